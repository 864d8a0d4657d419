import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { oneLine, table } from '../text/format.ts';
import type { AgentAccess } from './agent-access.ts';
import { chosenAgents } from './open-agents.ts';

/** Options for one page of a list. */
type PageOptions = { readonly limit: number; readonly cursor?: string };

/** All items of a paged list. */
export async function allPages<Item>(
  read: (page: PageOptions) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor === undefined ? { limit: 200 } : { limit: 200, cursor });
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return items;
}

/** `undefined` for an agent without a store, and for a store without the capability. */
export async function orNothing<Value>(
  found: Promise<Value | undefined>,
): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'FAILED_PRECONDITION') return undefined;
    throw error;
  }
}

/** All snapshots of a session, including orphaned ones. */
export async function readTimeline(
  agent: Pick<AgentAccess, 'listSnapshots'>,
  sessionId: string,
): Promise<Snapshot[]> {
  const items = await allPages((page) =>
    agent.listSnapshots(sessionId, { includeOrphaned: true, ...page }),
  );
  return items as Snapshot[];
}

/** Something that an id prefix can mean. */
interface Candidate<Value> {
  readonly id: string;
  /** Columns that tell it from the others: its agent, its title. */
  readonly about: readonly string[];
  readonly value: Value;
}

const maxShown = 10;

/** The candidate whose id is, or starts with, `given`. An ambiguous prefix is an error that lists the candidates. */
function matchPrefix<Value>(
  given: string,
  kind: 'session' | 'snapshot',
  candidates: readonly Candidate<Value>[],
): Value | undefined {
  const exact = candidates.filter(({ id }) => id === given);
  const matching =
    exact.length > 0 || given === '' ? exact : candidates.filter(({ id }) => id.startsWith(given));
  const [first, ...others] = matching;
  if (first === undefined || others.length === 0) return first?.value;
  const rows = matching
    .slice(0, maxShown)
    .map(({ id, about }) => ['', oneLine(id, 64), ...about.map((text) => oneLine(text, 48))]);
  const more = matching.length > maxShown ? `\n  … and ${matching.length - maxShown} more` : '';
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `"${oneLine(given)}" matches ${matching.length} ${kind}s. Use more of the id, or --agent:\n${table(rows)}${more}`,
  );
}

/** A session and the agent, or the scope, that it was found in. */
interface FoundSession<Place> {
  readonly place: Place;
  readonly session: SessionInfo;
}

/** Reads the sessions of one place: of an agent, or of a scope of a store. */
export interface SessionReader<Place> {
  readonly place: Place;
  readonly name: string;
  get(sessionId: string): Promise<SessionInfo | undefined>;
  list(options: PageOptions & { readonly query: string }): Promise<Page<SessionInfo>>;
}

/** The session with this id, or the only one whose id starts with it, in any place; `undefined` when there is none. */
export async function lookUpSession<Place>(
  readers: readonly SessionReader<Place>[],
  given: string,
): Promise<FoundSession<Place> | undefined> {
  const candidate = (
    { place, name }: SessionReader<Place>,
    session: SessionInfo,
  ): Candidate<FoundSession<Place>> => ({
    id: session.sessionId,
    about: [name, session.title ?? ''],
    value: { place, session },
  });
  const exact: Candidate<FoundSession<Place>>[] = [];
  for (const reader of readers) {
    const session = await reader.get(given);
    if (session !== undefined) exact.push(candidate(reader, session));
  }
  if (exact.length > 0 || given === '') return matchPrefix(given, 'session', exact);
  const lists = await Promise.all(
    readers.map(async (reader) => {
      const sessions = await allPages((page) => reader.list({ query: given, ...page }));
      // The query also finds titles and metadata.
      const fitting = sessions.filter(({ sessionId }) => sessionId.startsWith(given));
      return fitting.map((session) => candidate(reader, session));
    }),
  );
  return matchPrefix(given, 'session', lists.flat());
}

/** As {@link lookUpSession}, of the agents that `--agent` leaves. */
export async function findSession(
  agents: readonly AgentAccess[],
  given: string,
  name?: string,
): Promise<{ readonly agent: AgentAccess; readonly session: SessionInfo }> {
  const found = await lookUpSession(chosenAgents(agents, name).map(agentReader), given);
  if (found !== undefined) return { agent: found.place, session: found.session };
  throw noSession(
    given,
    '"waymark sessions" lists them. For a session of an owner, use --owner, or --header with --url.',
  );
}

/** Reads the sessions of an agent. */
export function agentReader(agent: AgentAccess): SessionReader<AgentAccess> {
  return {
    place: agent,
    name: agent.name,
    get: async (id) => (await orNothing(agent.getSession(id))) as SessionInfo | undefined,
    list: async (options) => (await orNothing(agent.listSessions(options))) ?? { items: [] },
  };
}

/** The error for an unknown session. */
export function noSession(given: string, hint: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no session "${oneLine(given, 80)}". ${hint}`);
}

/** A snapshot and its agent. */
interface FoundSnapshot {
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
  const chosen = chosenAgents(agents, name);
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
    const found = await lookUpSession(chosenAgents(agents, name).map(agentReader), given);
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

// Runs come first: an attached run is not listed with its session before it has ended.
async function snapshotCandidates(
  agent: AgentAccess,
  prefix: string,
): Promise<Candidate<{ readonly agent: AgentAccess; readonly snapshotId: string }>[]> {
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
    allPages(async (options) => {
      const page = await agent.listSessions(options);
      left -= page.items.length;
      return left > 0 ? page : { items: page.items };
    }),
  );
  return sessions ?? [];
}
