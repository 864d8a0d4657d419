import { type ReactNode, type RefObject, useLayoutEffect, useRef } from 'react';
import type { Snapshot } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { keyNames } from '../lib/keys.ts';
import { knownSnapshot } from '../lib/known-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, markOf, markWords } from '../ui/mark.tsx';

/** Says that one is looking at the past, and what can be done there. Looking changes nothing. */
export function PastBar(): ReactNode {
  const { store, place } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const past = useAgentValue(store, (view) => view.past);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const snapshot = knownSnapshot({ timeline, past }, place.snapshot);
  if (!snapshot || place.snapshot === headId) return null;
  const head = timeline.find((each) => each.snapshotId === headId);
  return <PastSnapshot snapshot={snapshot} headTurn={head?.turnIndex ?? 0} />;
}

function PastSnapshot({
  snapshot,
  headTurn,
}: {
  readonly snapshot: Snapshot;
  readonly headTurn: number;
}): ReactNode {
  const { commands } = useWorkbench();
  const bar = useFocusHandover();
  const { snapshotId, turnIndex, status } = snapshot;
  const last = Math.max(turnIndex, headTurn) + 1;
  const mark = markOf(snapshot, false);
  const canGoOn = status === 'succeeded';
  return (
    <section ref={bar} className="past-bar" aria-label="Earlier snapshot">
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
        Back to now <kbd>{keyNames.escape}</kbd>
      </button>
      <span className="past-actions">
        {canGoOn && (
          <>
            <button
              type="button"
              className="button"
              onClick={() => void commands.restore(snapshotId)}
            >
              <Icon name="back" size={14} /> Restore
            </button>
            <button type="button" className="button" onClick={() => void commands.fork(snapshotId)}>
              <Icon name="branch" size={14} /> Fork
            </button>
          </>
        )}
        {status === 'aborted' && (
          <button
            type="button"
            className="button"
            onClick={() => void commands.restore(snapshotId, { partial: true })}
          >
            <Icon name="back" size={14} /> Continue from partial state
          </button>
        )}
        <button type="button" className="button" onClick={() => commands.compare(snapshotId)}>
          <Icon name="compare" size={14} /> Compare with now
        </button>
        {status !== 'pending' && (
          <button type="button" className="button" onClick={() => commands.label(snapshot)}>
            <Icon name="flag" size={14} /> Label
          </button>
        )}
      </span>
    </section>
  );
}

/** A bar that goes away with the focus hands it to the timeline, where the snapshot was selected. */
function useFocusHandover(): RefObject<HTMLElement | null> {
  const bar = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = bar.current;
    return () => {
      if (!element?.contains(document.activeElement)) return;
      document.querySelector<HTMLElement>('.timeline')?.focus();
    };
  }, []);
  return bar;
}
