import type { ReactNode } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, markOf, markWords } from '../ui/mark.tsx';

/** Says that one is looking at the past, and what can be done there. Looking changes nothing. */
export function PastBar(): ReactNode {
  const { store, commands, place } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const snapshot = timeline.find(({ snapshotId }) => snapshotId === place.snapshot);
  if (!snapshot || place.snapshot === headId) return null;
  const { snapshotId, turnIndex, status } = snapshot;
  const head = timeline.find((each) => each.snapshotId === headId);
  const last = Math.max(turnIndex, head?.turnIndex ?? 0) + 1;
  const mark = markOf(snapshot, false);
  const canGoOn = status === 'succeeded';
  return (
    <section className="past-bar" aria-label="Looking at the past">
      <span className="past-place">
        <MarkIcon kind={mark} />
        <strong>
          Turn {turnIndex + 1} of {last}
        </strong>
        {mark !== 'done' && mark !== 'orphaned' && (
          <span className="quiet">{markWords[mark].split(';')[0]}</span>
        )}
      </span>
      <button
        type="button"
        className="text-button past-leave"
        onClick={() => commands.look(undefined)}
      >
        Back to now <kbd>esc</kbd>
      </button>
      <span className="past-actions">
        {canGoOn && (
          <>
            <button
              type="button"
              className="button"
              onClick={() => void commands.goBack(snapshotId)}
            >
              <Icon name="back" size={14} /> Go back here
            </button>
            <button
              type="button"
              className="button"
              onClick={() => void commands.branch(snapshotId)}
            >
              <Icon name="branch" size={14} /> Branch here
            </button>
          </>
        )}
        <button type="button" className="button" onClick={() => commands.compare(snapshotId)}>
          <Icon name="compare" size={14} /> Compare with now
        </button>
        <button type="button" className="button" onClick={() => commands.label(snapshot)}>
          <Icon name="flag" size={14} /> Label
        </button>
      </span>
    </section>
  );
}
