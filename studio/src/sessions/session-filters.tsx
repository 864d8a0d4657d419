import { type ReactNode, useEffect, useState } from 'react';
import type { RemoteAgent } from '../../../src/client/index.ts';
import { pulse } from '../lib/pulse.ts';
import { useSource } from '../lib/use-source.ts';

/** Which sessions are listed. */
export type SessionFilterName = 'all' | 'waiting' | 'failed' | 'labelled';

const names: readonly Exclude<SessionFilterName, 'all'>[] = ['waiting', 'failed', 'labelled'];

/** The filters of the list of sessions, each with how many it finds. */
export function SessionFilters({
  agent,
  chosen,
  onChoose,
}: {
  readonly agent: RemoteAgent;
  readonly chosen: SessionFilterName;
  readonly onChoose: (filter: SessionFilterName) => void;
}): ReactNode {
  const counts = useCounts(agent);
  // A filter that finds nothing is of no use, unless it is the one that is on.
  const shown = names.filter((name) => name === chosen || (counts.get(name) ?? '0') !== '0');
  if (shown.length === 0) return null;
  return (
    <fieldset className="session-filters segments" aria-label="Show sessions">
      {(['all', ...shown] as const).map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen}
          onClick={() => onChoose(name)}
        >
          {name.charAt(0).toUpperCase() + name.slice(1)}
          {counts.has(name) && <span className="count">{counts.get(name)}</span>}
        </button>
      ))}
    </fieldset>
  );
}

/** Counting stops here: the number says how much there is to do, not how much there is. */
const maxCounted = 50;

function useCounts(agent: RemoteAgent): ReadonlyMap<SessionFilterName, string> {
  const { beat } = useSource(pulse);
  const [counts, setCounts] = useState<ReadonlyMap<SessionFilterName, string>>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    const count = async (name: (typeof names)[number]): Promise<[SessionFilterName, string]> => {
      const page = await agent.listSessions({ limit: maxCounted, [name]: true });
      return [name, `${page.items.length}${page.next === undefined ? '' : '+'}`];
    };
    Promise.all(names.map(count)).then(
      (read) => isCurrent && setCounts(new Map(read)),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [agent, beat]);
  return counts;
}
