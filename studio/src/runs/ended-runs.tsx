import { type ReactNode, useDeferredValue, useState } from 'react';
import { duration } from '../lib/format.ts';
import { pulse } from '../lib/pulse.ts';
import { type RecordedTurn, type TurnFilter, useRecordedTurns } from '../lib/recorded-turns.ts';
import { useSource } from '../lib/use-source.ts';
import { TurnFilters } from '../traces/turn-filters.tsx';
import { TurnLink } from '../traces/turn-link.tsx';
import { Empty } from '../ui/empty.tsx';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { retryTurn } from './run-actions.ts';

/** The runs that have ended, as the server recorded them: what was asked, why they failed, and the way to run those again. */
export function EndedRuns({ agents }: { readonly agents: readonly string[] }): ReactNode {
  const [filter, setFilter] = useState<TurnFilter>({});
  const turns = useRecordedTurns(useDeferredValue(filter));
  if (turns === undefined || turns === 'none') return null;
  const ended = turns.items.filter(({ endedAt }) => endedAt !== undefined);
  return (
    <section aria-label="Ended">
      <h2 className="section-title">Ended</h2>
      <TurnFilters agents={agents} filter={filter} onChange={setFilter} />
      {ended.length === 0 && <Empty title="No runs found." />}
      <ul className="run-cards">
        {ended.map((turn) => (
          <EndedRun key={turn.spanId} turn={turn} canStart={agents.includes(turn.agent)} />
        ))}
      </ul>
    </section>
  );
}

function EndedRun({
  turn,
  canStart,
}: {
  readonly turn: RecordedTurn;
  /** Whether its agent takes background runs. */
  readonly canStart: boolean;
}): ReactNode {
  const [isBusy, setBusy] = useState(false);
  const { agent, attempt = 1, mode, error, startedAt, endedAt = startedAt, hasInput } = turn;
  // A worker cannot tell an abort in the background from a takeover; the store can.
  const { ended } = useSource(pulse);
  const status = ended.find(({ run }) => run.sessionId === turn.sessionId)?.status;
  const isLost = turn.outcome === 'lost';
  const isAborted = turn.outcome === 'stopped' || (isLost && status === 'aborted');
  const cut = isAborted ? 'aborted' : 'aborted or taken over';
  const isDone = !error && !isAborted && !isLost;
  const said = error ? 'failed' : isDone ? 'succeeded' : cut;
  const retry = async (): Promise<void> => {
    setBusy(true);
    await retryTurn(turn);
    setBusy(false);
  };
  return (
    <li className="run-card ended">
      <div className="run-head">
        <MarkIcon kind={error ? 'failed' : isDone ? 'done' : 'aborted'} />
        <TurnLink turn={turn} />
        {attempt > 1 && <span className="chip">attempt {attempt}</span>}
        <Time iso={new Date(endedAt).toISOString()} form="clock" />
        {hasInput && canStart && !isDone && (
          <button
            type="button"
            className="button"
            disabled={isBusy}
            onClick={() => void retry()}
            aria-label={`Retry: ${turn.asked}`}
            title="Start a new run with the same input, from the same snapshot"
          >
            <Icon name="back" size={14} /> Retry
          </button>
        )}
      </div>
      <p className="run-note">
        {agent}
        {turn.owner !== undefined && ` · ${turn.owner}`} ·{' '}
        {mode === 'detached' ? 'background' : 'turn'} · {said} after {duration(endedAt - startedAt)}
      </p>
      {error && (
        <details className="fold">
          <summary>
            <Icon name="chevron" size={12} /> <span dir="auto">{error.message}</span>
          </summary>
          <FaultText text={error.text} />
        </details>
      )}
    </li>
  );
}
