import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { oneLine } from '../text/safe.ts';
import type { AgentAccess } from './agent-access.ts';
import { allPages } from './all-pages.ts';
import { agentReader, lookUpSession } from './find-session.ts';
import { type Candidate, matchPrefix } from './match-prefix.ts';
import { pickAgent } from './open-agents.ts';
import { orNothing } from './or-nothing.ts';
import { readTimeline } from './read-timeline.ts';

/** A snapshot and its agent. */
export interface FoundSnapshot {
  readonly agent: AgentAccess;
  readonly snapshot: Snapshot;
}

/** Sessions per agent whose snapshots are compared with a prefix, newest first: each takes a request. */
const maxSessions = 1_000;

/**
 * The snapshot or run with this id, or the only one whose id starts with it, of any agent. NOT_FOUND when there is none;
 * an ambiguous prefix is INVALID_ARGUMENT.
 */
export async function findSnapshot(
  agents: readonly AgentAccess[],
  given: string,
  name?: string,
): Promise<FoundSnapshot> {
  const chosen = name === undefined ? agents : [pickAgent(agents, name)];
  const exact = await readSnapshot(chosen, given);
  if (exact !== undefined) return exact;
  // Snapshot ids are UUIDs: nothing else can be the beginning of one.
  if (/^[0-9a-f-]{1,35}$/.test(given)) {
    const lists = await Promise.all(chosen.map((agent) => snapshotCandidates(agent, given)));
    const match = matchPrefix(given, 'snapshot', lists.flat());
    const found = match && (await readSnapshot([match.agent], match.snapshotId));
    if (found !== undefined) return found;
  }
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no snapshot or run "${oneLine(given, 80)}". "waymark snapshots <session>" lists the snapshots of a session, "waymark runs" the open runs.`,
  );
}

/** As {@link findSnapshot}; the id of a session stands for its last turn if that failed, else for its head. */
export async function findTurn(
  agents: readonly AgentAccess[],
  given: string,
  name?: string,
): Promise<FoundSnapshot> {
  try {
    return await findSnapshot(agents, given, name);
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'NOT_FOUND') throw error;
    const chosen = name === undefined ? agents : [pickAgent(agents, name)];
    const found = await lookUpSession(chosen.map(agentReader), given);
    const shown = found && (await lastTurn(found.place, found.session));
    if (shown === undefined) throw error;
    return shown;
  }
}

async function lastTurn(
  agent: AgentAccess,
  { sessionId, headId }: SessionInfo,
): Promise<FoundSnapshot | undefined> {
  const timeline = await readTimeline(agent, sessionId);
  const newest = timeline.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt)).at(-1);
  const snapshotId = newest?.status === 'failed' ? newest.snapshotId : headId;
  return snapshotId === undefined ? undefined : await readSnapshot([agent], snapshotId);
}

async function readSnapshot(
  agents: readonly AgentAccess[],
  snapshotId: string,
): Promise<FoundSnapshot | undefined> {
  for (const agent of agents) {
    const snapshot = await orNothing(agent.getSnapshot({ snapshotId }));
    if (snapshot !== undefined) return { agent, snapshot: snapshot as Snapshot };
  }
  return undefined;
}

interface SnapshotMatch {
  readonly agent: AgentAccess;
  readonly snapshotId: string;
}

// Runs come first: an attached run is not listed with its session before it has ended.
async function snapshotCandidates(
  agent: AgentAccess,
  prefix: string,
): Promise<Candidate<SnapshotMatch>[]> {
  const found = new Map<string, string>();
  const add = (id: string, about: string): void => {
    if (id.startsWith(prefix) && !found.has(id)) found.set(id, about);
  };
  for (const run of (await orNothing(agent.listRuns()))?.items ?? [])
    add(run.snapshotId, 'open run');
  for (const run of (await orNothing(agent.listDeadRuns()))?.items ?? []) {
    add(run.snapshotId, 'failed run');
  }
  for (const { sessionId } of await newestSessions(agent)) {
    for (const { snapshotId, turnIndex } of await readTimeline(agent, sessionId)) {
      add(snapshotId, `turn ${turnIndex + 1} of ${sessionId}`);
    }
  }
  return [...found].map(([snapshotId, about]) => ({
    id: snapshotId,
    about: [agent.name, about],
    value: { agent, snapshotId },
  }));
}

async function newestSessions(agent: AgentAccess): Promise<readonly SessionInfo[]> {
  let left = maxSessions;
  const sessions = await orNothing(
    allPages(async (cursor) => {
      const page = await agent.listSessions({
        limit: 200,
        ...(cursor !== undefined && { cursor }),
      });
      left -= page.items.length;
      return left > 0 ? page : { items: page.items };
    }),
  );
  return sessions ?? [];
}
