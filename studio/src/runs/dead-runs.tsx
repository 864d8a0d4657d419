import { type ReactNode, useState } from 'react';
import type { DeadRun } from '../../../src/client/index.ts';
import { plural } from '../lib/format.ts';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { SessionLink } from './session-link.tsx';
import { useDeadRuns } from './use-dead-runs.ts';

/** Failed runs whose workers died too often: why, and a button to retry. Nothing when there are none. */
export function DeadRuns({ agents }: { readonly agents: readonly string[] }): ReactNode {
  const { items, retry } = useDeadRuns(agents);
  if (items.length === 0) return null;
  return (
    <section aria-label="Dead runs">
      <h2 className="section-title">Dead runs</h2>
      <p className="quiet section-about">
        These runs crashed their worker at every attempt. Fix the cause, then retry.
      </p>
      <ul className="run-cards">
        {items.map((run) => (
          <DeadCard key={run.snapshotId} run={run} onRetry={() => retry(run)} />
        ))}
      </ul>
    </section>
  );
}

function DeadCard({
  run,
  onRetry,
}: {
  readonly run: DeadRun;
  readonly onRetry: () => Promise<void>;
}): ReactNode {
  const [isBusy, setBusy] = useState(false);
  const { agent, attempts, since } = run;
  const again = async (): Promise<void> => {
    setBusy(true);
    await onRetry();
    setBusy(false);
  };
  return (
    <li className="run-card">
      <div className="run-head">
        <MarkIcon kind="failed" />
        <SessionLink run={run} />
        <span className="run-said">after {plural(attempts.length, 'attempt')}</span>
        <Time iso={since} form="clock" />
        <span className="run-buttons">
          <button
            type="button"
            className="button"
            disabled={isBusy}
            onClick={() => void again()}
            aria-label={`Retry ${agent}`}
          >
            <Icon name="back" size={14} /> Retry
          </button>
        </span>
      </div>
      <ol className="attempts">
        {attempts.map(({ attempt, error }) => (
          <li key={attempt}>
            <span className="quiet">Attempt {attempt}</span> <span dir="auto">{error}</span>
          </li>
        ))}
      </ol>
    </li>
  );
}
