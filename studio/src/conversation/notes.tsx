import type { ReactNode } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { latestFault } from '../lib/faults.ts';
import { plural } from '../lib/format.ts';
import { toProgress } from '../lib/progress.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon } from '../ui/mark.tsx';

/** The activity of the running turn. */
export function RunningNote(): ReactNode {
  const { store } = useWorkbench();
  const phase = useAgentValue(store, (view) => view.phase);
  const status = useAgentValue(store, (view) => view.status);
  const takeovers = useAgentValue(store, (view) => view.takeovers);
  const running = useAgentValue(store, (view) => view.running);
  if (phase === 'ready' && running !== undefined) return <LeftNote />;
  if (phase !== 'sending' && phase !== 'running' && phase !== 'stopping') return null;
  const { part, figures, text } = toProgress(status);
  const words =
    phase === 'sending'
      ? 'sending…'
      : phase === 'stopping'
        ? 'stopping…'
        : [figures, text].filter(Boolean).join(' · ');
  return (
    <p className="running-note" role="status">
      <MarkIcon kind="pending" />
      {part !== undefined && <progress value={part} max={1} aria-label="Progress" />}
      <span dir="auto">{words || 'working…'}</span>
      {takeovers > 0 && <span className="chip">taken over {plural(takeovers, 'time')}</span>}
    </p>
  );
}

function LeftNote(): ReactNode {
  const { store } = useWorkbench();
  return (
    <p className="running-note" role="status">
      <MarkIcon kind="pending" />
      <span>A turn is still running on the server.</span>
      <button type="button" className="text-button" onClick={() => void store.actions.refresh()}>
        Watch it
      </button>
    </p>
  );
}

/** Why the last turn or call came to nothing, and what to do. */
export function ErrorNote(): ReactNode {
  const { store, spans } = useWorkbench();
  const error = useAgentValue(store, (view) => view.error);
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  const finishReason = useAgentValue(store, (view) => view.finishReason);
  const phase = useAgentValue(store, (view) => view.phase);
  if (phase !== 'ready') return null;
  if (error) {
    // The server tells clients only what is public; Studio on the same machine also shows what was thrown.
    const thrown = finishReason === 'failed' ? latestFault(spans, sessionId) : undefined;
    return (
      <div className="note fault" role="alert">
        <Icon name="warning" />
        <div>
          {thrown ? <FaultText text={thrown.text} /> : <p dir="auto">{error.message}</p>}
          <p className="quiet">{error.status}</p>
        </div>
        <button type="button" className="button" onClick={() => void store.actions.retry()}>
          Try again
        </button>
      </div>
    );
  }
  const said = finishReason === undefined ? undefined : reasons[finishReason];
  return said === undefined ? null : (
    <p className="note" role="status">
      {said}
    </p>
  );
}

const reasons: Readonly<Record<string, string>> = {
  aborted: 'Stopped. The partial answer is kept.',
  length: 'The model reached its length limit.',
  blocked: 'The model’s provider blocked the answer.',
};
