import { type ReactNode, useDeferredValue, useState } from 'react';
import { count, duration } from '../lib/format.ts';
import { type RecordedTurn, type TurnFilter, useRecordedTurns } from '../lib/recorded-turns.ts';
import { costText } from '../lib/usage.ts';
import { Empty } from '../ui/empty.tsx';
import { MarkIcon, type MarkKind } from '../ui/mark.tsx';
import { TableFrame } from '../ui/table-frame.tsx';
import { Time } from '../ui/time.tsx';
import { TurnFilters } from './turn-filters.tsx';
import { TurnLink } from './turn-link.tsx';

/** The recorded turns of all sessions: how long they took, and what they used. */
export function TracesView({ agents }: { readonly agents: readonly string[] }): ReactNode {
  const [filter, setFilter] = useState<TurnFilter>({});
  const turns = useRecordedTurns(useDeferredValue(filter));
  return (
    <main className="runs-view wide" aria-label="Traces">
      <header className="page-header">
        <h1>Traces</h1>
        <p className="quiet">The turns that this server has recorded, newest first.</p>
      </header>
      {turns === 'none' ? (
        <Empty title="This server records no traces.">
          <p>A server records turns only if it serves Studio without authentication.</p>
        </Empty>
      ) : (
        <>
          <TurnFilters agents={agents} filter={filter} onChange={setFilter} />
          {turns?.items.length === 0 && <Empty title="No turns found." />}
          {turns !== undefined && turns.items.length > 0 && <TurnTable turns={turns.items} />}
          {turns?.isMore && <p className="quiet">To find older turns, use the filter.</p>}
        </>
      )}
    </main>
  );
}

function TurnTable({ turns }: { readonly turns: readonly RecordedTurn[] }): ReactNode {
  const hasCosts = turns.some(({ cost }) => cost !== undefined);
  return (
    <TableFrame label="Turns">
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">Turn</th>
            <th scope="col">Agent</th>
            <th scope="col">Models</th>
            <th scope="col" className="number">
              Took
            </th>
            <th scope="col" className="number">
              Model calls
            </th>
            <th scope="col" className="number">
              Tools
            </th>
            <th scope="col" className="number">
              Tokens
            </th>
            {hasCosts && (
              <th scope="col" className="number">
                Cost
              </th>
            )}
            <th scope="col" className="number">
              When
            </th>
          </tr>
        </thead>
        <tbody>
          {turns.map((turn) => (
            <TurnRow key={turn.spanId} turn={turn} hasCosts={hasCosts} />
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

function markOf({ endedAt, error, outcome }: RecordedTurn): MarkKind {
  if (endedAt === undefined) return 'pending';
  if (error) return 'failed';
  return outcome === 'stopped' || outcome === 'lost' ? 'aborted' : 'done';
}

function TurnRow({
  turn,
  hasCosts,
}: {
  readonly turn: RecordedTurn;
  readonly hasCosts: boolean;
}): ReactNode {
  const { agent, models, modelCalls, toolCalls, tokens, cost, error, startedAt, endedAt } = turn;
  return (
    <tr>
      <td>
        <span className="turn-cell">
          <MarkIcon kind={markOf(turn)} />
          <span className="turn-words">
            <TurnLink turn={turn} />
            {error && (
              <span className="turn-fault" dir="auto">
                {error.message}
              </span>
            )}
          </span>
        </span>
      </td>
      <td>
        {agent}
        {turn.owner !== undefined && (
          <span className="turn-owner" dir="auto">
            {turn.owner}
          </span>
        )}
      </td>
      <td>{models.join(', ')}</td>
      <td className="number">
        {endedAt === undefined ? 'running' : duration(endedAt - startedAt)}
      </td>
      <td className="number">{modelCalls}</td>
      <td className="number">{toolCalls}</td>
      <td className="number">{count(tokens)}</td>
      {hasCosts && <td className="number">{cost ? costText({ cost }) : '–'}</td>}
      <td className="number">
        <Time iso={new Date(startedAt).toISOString()} />
      </td>
    </tr>
  );
}
