import { type ReactNode, useState } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { StateChanges } from './state-changes.tsx';
import type { Subject } from './use-subject.ts';

/** What a turn changed; or how its state differs from that of another one. */
export function DiffTab({ subject }: { readonly subject: Subject }): ReactNode {
  const { agent, store, place } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const [chosen, setChosen] = useState('');
  const ownId = subject.snapshot?.snapshotId;
  const labelled = timeline.filter(
    ({ label, snapshotId }) => label !== undefined && snapshotId !== ownId,
  );
  const base = chosen === '' ? place.base : chosen;
  const other = useSnapshot(agent, base);
  const before = base === undefined ? subject.before : other?.state;
  if (!subject.state?.messages?.length) {
    return (
      <Empty title="Nothing has happened yet.">
        <p>What a turn changes will stand here: custom state by path, files by line.</p>
      </Empty>
    );
  }
  return (
    <>
      <label className="compared-with">
        <span>{subject.isLive ? 'Live, compared with' : 'Compared with'}</span>
        <select value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <option value="">
            {place.base === undefined ? 'the turn before' : 'the marked turn'}
          </option>
          {headId !== undefined && headId !== ownId && <option value={headId}>now</option>}
          {labelled.map(({ snapshotId, label, turnIndex }) => (
            <option key={snapshotId} value={snapshotId}>
              turn {turnIndex + 1}, “{label}”
            </option>
          ))}
        </select>
      </label>
      {before && subject.state ? (
        <StateChanges before={before} after={subject.state} />
      ) : (
        <p className="quiet loading">Loading…</p>
      )}
    </>
  );
}
