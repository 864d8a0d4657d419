import type { ReactNode } from 'react';
import type { RunInfo } from '../../../src/client/index.ts';
import { placeHash } from '../lib/place.ts';
import { pulse } from '../lib/pulse.ts';
import { useSource } from '../lib/use-source.ts';
import { closeSheet } from '../shell/panels.ts';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon } from '../ui/mark.tsx';
import { abortRun } from './run-actions.ts';
import { RunProgress } from './run-progress.tsx';

/** The runs outside of the open conversation. */
export function RunList({ sessionId }: { readonly sessionId: string | undefined }): ReactNode {
  const { runs } = useSource(pulse);
  const shown = runs.filter((run) => run.mode === 'detached' || run.sessionId !== sessionId);
  return (
    <section className="runs" aria-label="Runs">
      <header className="panel-header">
        <h2>Runs</h2>
        <a className="text-button" href={placeHash({ view: 'runs' })} onClick={() => closeSheet()}>
          All
        </a>
      </header>
      {shown.length === 0 ? (
        <p className="quiet">No background runs.</p>
      ) : (
        <ul>
          {shown.map((run) => (
            <RunItem key={run.snapshotId} run={run} />
          ))}
        </ul>
      )}
    </section>
  );
}

function RunItem({ run }: { readonly run: RunInfo }): ReactNode {
  const { agent, sessionId, attempt, expired } = run;
  return (
    <li className="run-item">
      <a href={placeHash({ view: 'chat', agent, session: sessionId })} onClick={() => closeSheet()}>
        <MarkIcon kind={expired ? 'expired' : 'pending'} />
        <span className="run-name">{agent}</span>
        {attempt > 1 && <span className="chip">attempt {attempt}</span>}
        <RunProgress run={run} />
      </a>
      <button
        type="button"
        className="icon-button"
        onClick={() => void abortRun(run)}
        aria-label={`Abort the run of ${agent}`}
        title="Abort"
      >
        <Icon name="stop" size={14} />
      </button>
    </li>
  );
}
