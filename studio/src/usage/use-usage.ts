import { useEffect, useState } from 'react';
import type { AgentInfo, SessionInfo, Usage, UsageReport } from '../../../src/client/index.ts';
import { agentOf } from '../lib/server.ts';
import { addUsage } from '../lib/usage.ts';
import { sessionTitle } from '../sessions/session-title.ts';

/** The grouping of the sums. */
export type UsageGroup = 'day' | 'agent' | 'model' | 'session';

/** The usage of one day, agent, model or session. */
export interface UsageRow {
  readonly key: string;
  readonly name: string;
  readonly calls: number;
  readonly usage: Usage;
  /** The session of a row about one. */
  readonly session?: SessionInfo;
}

/** The usage of all sessions of all agents. */
export interface UsageSums {
  readonly rows: readonly UsageRow[];
  readonly calls: number;
  readonly usage: Usage;
}

/** Sessions are summed up one by one, so only the latest are. */
export const maxSessions = 30;

/** The usage since a day; `none` where no store counts it, `undefined` until it is known. */
export function useUsage(
  agents: readonly AgentInfo[],
  by: UsageGroup,
  since: string | undefined,
): UsageSums | 'none' | undefined {
  const [read, setRead] = useState<{ readonly key: string; readonly sums: UsageSums | 'none' }>();
  const key = `${by} ${since}`;
  useEffect(() => {
    let isCurrent = true;
    readUsage(agents, by, since).then(
      (sums) => isCurrent && setRead({ key, sums }),
      () => isCurrent && setRead({ key, sums: 'none' }),
    );
    return () => {
      isCurrent = false;
    };
  }, [agents, by, since, key]);
  return read?.key === key ? read.sums : undefined;
}

async function readUsage(
  agents: readonly AgentInfo[],
  by: UsageGroup,
  since: string | undefined,
): Promise<UsageSums | 'none'> {
  const options = { by: by === 'session' ? ('model' as const) : by, ...(since && { since }) };
  const reports = await Promise.all(
    // A store that does not count is no reason to hide what the others have counted.
    agents.map(({ name }) =>
      agentOf(name)
        .getUsage(options)
        .catch(() => undefined),
    ),
  );
  const known = reports.filter((report) => report !== undefined);
  if (known.length === 0) return 'none';
  return {
    rows: by === 'session' ? await sessionRows(agents, since) : mergedRows(known, by),
    calls: known.reduce((sum, { calls }) => sum + calls, 0),
    usage: addUsage(known.map(({ usage }) => usage)),
  };
}

/** The same day, agent or model may have rows in the reports of several agents. */
function mergedRows(reports: readonly UsageReport[], by: UsageGroup): readonly UsageRow[] {
  const rows = new Map<string, UsageRow>();
  for (const { key, calls, usage } of reports.flatMap(({ items = [] }) => items)) {
    const before = rows.get(key);
    rows.set(key, {
      key,
      name: key === '' ? 'Calls without a model name' : key,
      calls: calls + (before?.calls ?? 0),
      usage: addUsage([before?.usage, usage]),
    });
  }
  return [...rows.values()].sort((a, b) =>
    by === 'day' ? b.key.localeCompare(a.key) : b.calls - a.calls,
  );
}

async function sessionRows(
  agents: readonly AgentInfo[],
  since: string | undefined,
): Promise<readonly UsageRow[]> {
  const lists = await Promise.all(
    agents
      .filter(({ metadata }) => metadata.timeline)
      .map(({ name }) =>
        agentOf(name)
          .listSessions({ limit: maxSessions })
          .then(({ items }) => items)
          .catch(() => []),
      ),
  );
  const latest = lists
    .flat()
    .sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
    .slice(0, maxSessions);
  const rows = await Promise.all(latest.map((session) => sessionRow(session, since)));
  return rows.flat();
}

async function sessionRow(
  session: SessionInfo,
  since: string | undefined,
): Promise<readonly UsageRow[]> {
  const { agent, sessionId } = session;
  const report = await agentOf(agent)
    .getUsage({ sessionId, ...(since && { since }) })
    .catch(() => undefined);
  if (!report || report.calls === 0) return [];
  const { calls, usage } = report;
  return [{ key: `${agent} ${sessionId}`, name: sessionTitle(session), calls, usage, session }];
}
