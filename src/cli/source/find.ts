import { hasStatus, invalid, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { oneLine, table } from '../text/format.ts';
import type { AgentAccess } from './agent-access.ts';

type PageOptions = { readonly limit: number; readonly cursor?: string };

export async function allPages<Item>(
  read: (page: PageOptions) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await read({ limit: 200, ...defined({ cursor }) });
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
    if (hasStatus(error, 'FAILED_PRECONDITION')) return undefined;
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
interface Candidate {
  readonly id: string;
  /** Columns that tell it from the others: its agent, its title. */
  readonly about: readonly string[];
}

const maxShown = 10;

/** The candidate whose id is, or starts with, `given`. An ambiguous prefix is an error that lists the candidates. */
function matchPrefix<Found extends Candidate>(
  given: string,
  kind: 'session' | 'snapshot',
  candidates: readonly Found[],
): Found | undefined {
  const exact = candidates.filter(({ id }) => id === given);
  const matching =
    exact.length > 0 || given === '' ? exact : candidates.filter(({ id }) => id.startsWith(given));
  if (matching.length < 2) return matching[0];
  const rows = matching
    .slice(0, maxShown)
    .map(({ id, about }) => ['', oneLine(id, 64), ...about.map((text) => oneLine(text, 48))]);
  const more = matching.length > maxShown ? `\n  … and ${matching.length - maxShown} more` : '';
  throw invalid(
    `"${oneLine(given)}" matches ${matching.length} ${kind}s. Use more of the id, or --agent:\n${table(rows)}${more}`,
  );
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
): Promise<{ readonly place: Place; readonly session: SessionInfo } | undefined> {
  const candidate = ({ place, name }: SessionReader<Place>, session: SessionInfo) => ({
    id: session.sessionId,
    about: [name, session.title ?? ''],
    place,
    session,
  });
  const exact = await Promise.all(
    readers.map(async (reader) => {
      const session = await reader.get(given);
      return session ? [candidate(reader, session)] : [];
    }),
  );
  if (exact.some(({ length }) => length > 0) || given === '')
    return matchPrefix(given, 'session', exact.flat());
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

/** As {@link lookUpSession}, of agents; an unknown session is NOT_FOUND. */
export async function findSession(agents: readonly AgentAccess[], given: string) {
  const found = await lookUpSession(agents.map(agentReader), given);
  if (found !== undefined) return { agent: found.place, session: found.session };
  throw noSession(
    given,
    '"waymark sessions" lists them. For a session of an owner, use --owner, or --header with --url.',
  );
}

export function agentReader(agent: AgentAccess): SessionReader<AgentAccess> {
  return {
    place: agent,
    name: agent.name,
    get: async (id) => (await orNothing(agent.getSession(id))) as SessionInfo | undefined,
    list: async (options) => (await orNothing(agent.listSessions(options))) ?? { items: [] },
  };
}

export function noSession(given: string, hint: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no session "${oneLine(given, 80)}". ${hint}`);
}

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
): Promise<FoundSnapshot> {
  const exact = await readSnapshot(agents, given);
  if (exact !== undefined) return exact;
  // Snapshot ids are UUIDs: nothing else can be the beginning of one.
  if (/^[0-9a-f-]{1,35}$/.test(given)) {
    const lists = await Promise.all(agents.map((agent) => snapshotCandidates(agent, given)));
    const match = matchPrefix(given, 'snapshot', lists.flat());
    const found = match && (await readSnapshot([match.agent], match.id));
    if (found !== undefined) return found;
  }
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no snapshot or run "${oneLine(given, 80)}". "waymark snapshots <session>" lists the snapshots of a session, "waymark runs" the open runs.`,
  );
}

/** As {@link findSnapshot}; the id of a session means its last turn if that failed, else for its head. */
export async function findTurn(
  agents: readonly AgentAccess[],
  given: string,
): Promise<FoundSnapshot> {
  try {
    return await findSnapshot(agents, given);
  } catch (error) {
    if (!hasStatus(error, 'NOT_FOUND')) throw error;
    const found = await lookUpSession(agents.map(agentReader), given);
    if (found === undefined) throw error;
    const { sessionId, headId } = found.session;
    const timeline = await readTimeline(found.place, sessionId);
    const newest = timeline.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt)).at(-1);
    const snapshotId = newest?.status === 'failed' ? newest.snapshotId : headId;
    const shown = snapshotId && (await readSnapshot([found.place], snapshotId));
    if (!shown) throw error;
    return shown;
  }
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
async function snapshotCandidates(agent: AgentAccess, prefix: string) {
  const found = new Map<string, string>();
  const add = (id: string, about: string): void => {
    if (id.startsWith(prefix) && !found.has(id)) found.set(id, about);
  };
  const runs = await orNothing(agent.listRuns());
  for (const { snapshotId } of runs?.items ?? []) add(snapshotId, 'open run');
  const deadRuns = await orNothing(agent.listDeadRuns());
  for (const { snapshotId } of deadRuns?.items ?? []) add(snapshotId, 'failed run');
  let left = maxSessions;
  const sessions = await orNothing(
    allPages(async (options) => {
      const page = await agent.listSessions(options);
      left -= page.items.length;
      return left > 0 ? page : { items: page.items };
    }),
  );
  for (const { sessionId } of sessions ?? []) {
    for (const { snapshotId, turnIndex } of await readTimeline(agent, sessionId)) {
      add(snapshotId, `turn ${turnIndex + 1} of ${sessionId}`);
    }
  }
  return [...found].map(([id, about]) => ({ id, about: [agent.name, about], agent }));
}
