import type { ReactNode } from 'react';
import type { RunInfo } from '../../../src/client/index.ts';
import { toProgress } from '../lib/progress.ts';

/** How far a run is: a bar where its status has figures, else what it says. */
export function RunProgress({
  run,
}: {
  readonly run: Pick<RunInfo, 'status' | 'stopping' | 'expired'>;
}): ReactNode {
  const { part, figures, text } = toProgress(run.status);
  const said = run.stopping ? 'stopping' : run.expired ? 'waiting for another process' : text;
  return (
    <span className="run-progress">
      {part !== undefined && (
        <progress value={part} max={1} aria-label="Progress">
          {figures}
        </progress>
      )}
      <span className="run-said" dir="auto">
        {[figures, said].filter(Boolean).join(' · ') || 'working'}
      </span>
    </span>
  );
}
