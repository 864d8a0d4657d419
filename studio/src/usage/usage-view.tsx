import { type ReactNode, useState } from 'react';
import type { AgentInfo, Usage } from '../../../src/client/index.ts';
import { count } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { costText, totalTokens } from '../lib/usage.ts';
import { PageHeader } from '../shell/page-header.tsx';
import { Empty } from '../ui/empty.tsx';
import { TableFrame } from '../ui/table-frame.tsx';
import { maxSessions, type UsageGroup, type UsageRow, useUsage } from './use-usage.ts';

const groups: readonly { readonly by: UsageGroup; readonly name: string }[] = [
  { by: 'day', name: 'Day' },
  { by: 'agent', name: 'Agent' },
  { by: 'model', name: 'Model' },
  { by: 'session', name: 'Session' },
];

const periods = { '7': 'Last 7 days', '30': 'Last 30 days', all: 'All time' } as const;

type Period = keyof typeof periods;

/** The usage of all sessions of all agents, by day, agent, model or session. */
export function UsageView({ agents }: { readonly agents: readonly AgentInfo[] }): ReactNode {
  const [by, setBy] = useState<UsageGroup>('day');
  const [period, setPeriod] = useState<Period>('30');
  const sums = useUsage(agents, by, firstDay(period));
  return (
    <main className="runs-view wide" aria-label="Usage">
      <PageHeader title="Usage">
        All usage, including failed turns. To see costs, set the <code>price</code> option of the
        app. <a href={placeHash({ view: 'traces' })}>Traces</a> lists the cost of each turn.
      </PageHeader>
      <div className="turn-filters">
        <fieldset className="segments" aria-label="Group by">
          {groups.map(({ by: group, name }) => (
            <button
              key={group}
              type="button"
              aria-pressed={group === by}
              onClick={() => setBy(group)}
            >
              {name}
            </button>
          ))}
        </fieldset>
        <select
          value={period}
          onChange={({ target }) => setPeriod(target.value as Period)}
          aria-label="Period"
        >
          {Object.entries(periods).map(([key, name]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {sums === 'none' && <Empty title="The stores of these agents do not record usage." />}
      {sums !== undefined && sums !== 'none' && (
        <>
          <UsageTotals calls={sums.calls} usage={sums.usage} />
          {sums.rows.length === 0 ? (
            <Empty title="No usage." />
          ) : (
            <UsageTable by={by} rows={sums.rows} />
          )}
          {by === 'session' && (
            <p className="quiet">The {maxSessions} sessions that changed last.</p>
          )}
        </>
      )}
    </main>
  );
}

function UsageTotals({
  calls,
  usage,
}: {
  readonly calls: number;
  readonly usage: Usage;
}): ReactNode {
  return (
    <dl className="facts usage-totals">
      {usage.cost && (
        <div>
          <dt>Cost</dt>
          <dd>{costText(usage)}</dd>
        </div>
      )}
      <div>
        <dt>Tokens</dt>
        <dd>{count(totalTokens(usage) ?? 0)}</dd>
      </div>
      <div>
        <dt>Model calls</dt>
        <dd>{count(calls)}</dd>
      </div>
    </dl>
  );
}

function UsageTable({
  by,
  rows,
}: {
  readonly by: UsageGroup;
  readonly rows: readonly UsageRow[];
}): ReactNode {
  const weightOf = weigher(rows);
  const hasCosts = rows.some(({ usage }) => usage.cost !== undefined);
  const most = Math.max(...rows.map(({ usage }) => weightOf(usage)), 1);
  return (
    <TableFrame label="Usage">
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">{groups.find((group) => group.by === by)?.name}</th>
            <th scope="col" className="number">
              Model calls
            </th>
            <th scope="col" className="number">
              Input
            </th>
            <th scope="col" className="number">
              Cached
            </th>
            <th scope="col" className="number">
              Written
            </th>
            <th scope="col" className="number">
              Output
            </th>
            {hasCosts && (
              <th scope="col" className="number">
                Cost
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <td>
                <RowName row={row} />
                <span
                  className="usage-bar"
                  aria-hidden="true"
                  style={{ inlineSize: `${(weightOf(row.usage) / most) * 100}%` }}
                />
              </td>
              <td className="number">{count(row.calls)}</td>
              <td className="number">{count(row.usage.inputTokens ?? 0)}</td>
              <td className="number">{count(row.usage.cachedInputTokens ?? 0)}</td>
              <td className="number">{count(row.usage.cacheWriteTokens ?? 0)}</td>
              <td className="number">{count(row.usage.outputTokens ?? 0)}</td>
              {hasCosts && <td className="number">{costText(row.usage) || '–'}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

function RowName({ row: { name, session } }: { readonly row: UsageRow }): ReactNode {
  if (!session) return <span dir="auto">{name}</span>;
  const { agent, sessionId } = session;
  return (
    <a
      className="turn-link"
      dir="auto"
      href={placeHash({ view: 'chat', agent, session: sessionId })}
    >
      {name}
    </a>
  );
}

/** The measure of the bars: the cost where all have the same single currency, else the tokens. */
function weigher(rows: readonly UsageRow[]): (usage: Usage) => number {
  const [currency, ...others] = new Set(rows.flatMap(({ usage }) => Object.keys(usage.cost ?? {})));
  if (currency === undefined || others.length > 0) return (usage) => totalTokens(usage) ?? 0;
  return ({ cost }) => cost?.[currency] ?? 0;
}

function firstDay(period: Period): string | undefined {
  if (period === 'all') return undefined;
  // Days are those of UTC, as the store counts them; today is one of them.
  const day = 24 * 60 * 60 * 1_000;
  return new Date(Date.now() - (Number(period) - 1) * day).toISOString().slice(0, 10);
}
