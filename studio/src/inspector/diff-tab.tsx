import { type ReactNode, useState } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { useFileDiffs } from '../files/use-files.ts';
import { alignStates, lastPage } from '../lib/message-pages.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { StateChanges } from './state-changes.tsx';
import type { Subject } from './use-subject.ts';

/** The changes of a turn, or the difference of its state from another one. */
export function DiffTab({ subject }: { readonly subject: Subject }): ReactNode {
  const { agent, store } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const [chosen, setChosen] = useState('');
  const ownId = subject.snapshot?.snapshotId;
  const labelled = timeline.filter(
    ({ label, snapshotId }) => label !== undefined && snapshotId !== ownId,
  );
  // The comparison of two turns stands in the middle; here is what the selected turn changed.
  const base = chosen === '' ? undefined : chosen;
  const other = useSnapshot(agent, base, { page: lastPage.messages });
  const [before, after] =
    base === undefined
      ? [subject.before, subject.state]
      : alignStates(
          { state: other?.state, from: other?.messageRange?.from ?? 0 },
          { state: subject.state, from: subject.from },
        );
  const workspace = useFileDiffs(agent, base ?? subject.snapshot?.parentId, ownId);
  if (!subject.state?.messages?.length) {
    return (
      <Empty title="Nothing has happened yet.">
        <p>What a turn changes appears here: custom state by path, files by line.</p>
      </Empty>
    );
  }
  return (
    <>
      <label className="compared-with">
        <span>{subject.isLive ? 'Live, compared with' : 'Compared with'}</span>
        <select value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <option value="">the previous turn</option>
          {headId !== undefined && headId !== ownId && <option value={headId}>now</option>}
          {labelled.map(({ snapshotId, label, turnIndex }) => (
            <option key={snapshotId} value={snapshotId}>
              turn {turnIndex + 1}, “{label}”
            </option>
          ))}
        </select>
      </label>
      {before && after ? (
        <StateChanges before={before} after={after} workspace={workspace} />
      ) : (
        <p className="quiet loading">Loading…</p>
      )}
    </>
  );
}
