import { type ReactNode, useEffect, useState } from 'react';
import { goTo } from '../lib/place.ts';
import { serverUrl, studioHeaders } from '../lib/server.ts';
import { useWorkbench } from '../shell/workbench.tsx';

/** The owners that have sessions; `undefined` until they are known, and where the server does not say. */
interface Owners {
  readonly items: readonly string[];
  /** Whether there are more than these. */
  readonly isMore: boolean;
}

/** Chooses whose sessions are shown. Left out where sessions have no owners. */
export function OwnerField(): ReactNode {
  const { info, place } = useWorkbench();
  const [owners, readAgain] = useOwners();
  const { owner } = place;
  if (owner === undefined && (owners?.items.length ?? 0) === 0) return null;
  const choose = (chosen: string): void => {
    goTo({ view: 'chat', agent: info.name, owner: chosen === '' ? undefined : chosen });
  };
  const items = owners?.items ?? [];
  const shown = owner === undefined || items.includes(owner) ? items : [owner, ...items];
  return (
    <div className="owner-field">
      <label htmlFor="owner">Owner</label>
      {owners?.isMore ? (
        <OwnerInput owner={owner} items={items} onChoose={choose} />
      ) : (
        <select
          id="owner"
          value={owner ?? ''}
          onChange={(event) => choose(event.target.value)}
          onFocus={readAgain}
        >
          <option value="">No owner</option>
          {shown.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

/** A field for an owner: if there are more than a list can show, any can be typed. */
function OwnerInput({
  owner = '',
  items,
  onChoose,
}: {
  readonly owner: string | undefined;
  readonly items: readonly string[];
  readonly onChoose: (owner: string) => void;
}): ReactNode {
  const [text, setText] = useState(owner);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(text.trim());
      }}
    >
      <input
        id="owner"
        type="search"
        list="owners"
        value={text}
        placeholder="No owner"
        onChange={(event) => setText(event.target.value)}
        onBlur={() => text.trim() !== owner && onChoose(text.trim())}
      />
      <datalist id="owners">
        {items.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </form>
  );
}

function useOwners(): readonly [Owners | undefined, () => void] {
  const [owners, setOwners] = useState<Owners>();
  const read = (): void => {
    readOwners().then(setOwners, () => {});
  };
  useEffect(read, []);
  return [owners, read];
}

async function readOwners(): Promise<Owners | undefined> {
  const response = await fetch(`${serverUrl}/studio/owners`, { headers: studioHeaders({}) });
  return response.ok ? await response.json() : undefined;
}
