import { WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { scopeOf } from '../../protocol/ids.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { WaitingSession } from '../../protocol/requests.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { ListOptions, Scope, TimelineSupport } from '../../store/contract/store.ts';
import { transformState, transformTitle } from '../persistence/transform.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { isInForeground } from '../turn/steps.ts';

/** How many sessions are listed at once: the state of each is read. */
const defaultLimit = 20;

/** The sessions of an owner that wait for the answer of a person. A sub-agent gets its answer from the session that called it. */
export async function listWaiting(
  spec: Pick<AgentSpec, 'name' | 'transform'>,
  sessions: TimelineSupport,
  scope: Scope,
  options: ListOptions,
): Promise<Page<WaitingSession>> {
  const { items, ...page } = await sessions.listSessions(scope, {
    limit: defaultLimit,
    ...options,
    waiting: true,
  });
  const read = items.map((session) => readWaiting(spec, sessions, scope, session));
  return { ...page, items: (await Promise.all(read)).flat() };
}

/** A session with the tool calls that wait in it; nothing if they were answered meanwhile. */
async function readWaiting(
  { name, transform }: Pick<AgentSpec, 'name' | 'transform'>,
  sessions: TimelineSupport,
  scope: Scope,
  listed: SessionInfo,
): Promise<readonly WaitingSession[]> {
  if (isInForeground(listed)) return [];
  const { sessionId } = listed;
  const session = await sessions.getSession(scope, sessionId, { state: true });
  const shown = session?.state && transformState(transform, session.state);
  const requests = pendingInterrupts(shown?.messages ?? []);
  if (session === undefined || session.running !== undefined || requests.length === 0) return [];
  const { headId, updatedAt } = session;
  const title = transformTitle(transform, session.title);
  return [
    defined({
      sessionId,
      agent: name,
      title,
      snapshotId: headId,
      since: updatedAt,
      requests: [...requests],
    }),
  ];
}

/** Where the list of each agent continues, by its name; `null`: it is at its end. */
type Cursors = Readonly<Record<string, string | null>>;

/**
 * Where the list continues, for so many agents that their cursors together do not fit into an address: the time of the last
 * session of a page, and the agents and ids of the sessions of that time that were on it. To continue there, the lists are read from their beginning.
 */
type Point = readonly [updatedAt: string, seen: readonly (readonly [string, string])[]];

/** The most characters of the cursors of all agents. In an address they take up to three times as many. */
const maxCursors = 1500;

interface Source {
  readonly spec: AgentSpec;
  readonly sessions: TimelineSupport;
  readonly scope: Scope;
  readonly page: Page<SessionInfo>;
  readonly cursor: string | undefined;
}

/**
 * The sessions of an owner that wait for the answer of a person, over several agents, newest first. Agents whose store has no
 * timeline have none.
 */
export async function listAllWaiting(
  specs: readonly AgentSpec[],
  {
    owner,
    limit = defaultLimit,
    cursor,
  }: ListOptions & { readonly owner?: string | undefined } = {},
): Promise<Page<WaitingSession>> {
  const { cursors, point } = parseCursor(cursor);
  const opened = specs
    .filter(({ name }) => cursors[name] !== null)
    .map((spec) => {
      const scope = scopeOf(spec, owner);
      if (point !== undefined) return openBehind(spec, scope, { limit, point });
      return openSource(spec, scope, { limit, cursor: cursors[spec.name] });
    });
  const sources = (await Promise.all(opened)).flat();
  const found = sources
    .flatMap((source) => source.page.items.map((session) => ({ source, session })))
    .sort((a, b) => Date.parse(b.session.updatedAt) - Date.parse(a.session.updatedAt))
    .slice(0, limit);
  const items = await Promise.all(
    found.map(({ source: { spec, sessions, scope }, session }) =>
      readWaiting(spec, sessions, scope, session),
    ),
  );
  const behind = (): string => JSON.stringify(pointAfter(found, point));
  if (point !== undefined) {
    const all = sources.reduce((sum, { page }) => sum + page.items.length, 0);
    const isMore = all > found.length || sources.some(({ page }) => page.next !== undefined);
    return { items: items.flat(), ...(isMore && { next: behind() }) };
  }
  const next: Record<string, string | null> = { ...cursors };
  for (const source of sources) {
    const taken = found.filter((each) => each.source === source).length;
    const at = await continueAfter(source, taken);
    if (at !== undefined) next[source.spec.name] = at;
  }
  const isMore = sources.some(({ spec }) => next[spec.name] !== null);
  if (!isMore) return { items: items.flat() };
  const text = JSON.stringify(next);
  const isLong = text.length > maxCursors && found.length > 0;
  return { items: items.flat(), next: isLong ? behind() : text };
}

/** Where the list continues after the sessions of a page, of which there is at least one. */
function pointAfter(
  found: readonly { readonly source: Source; readonly session: SessionInfo }[],
  before: Point | undefined,
): Point {
  const updatedAt = found.at(-1)?.session.updatedAt ?? '';
  const seen = found
    .filter(({ session }) => session.updatedAt === updatedAt)
    .map(({ source, session }) => [source.spec.name, session.sessionId] as const);
  return [updatedAt, before?.[0] === updatedAt ? [...before[1], ...seen] : seen];
}

/** The first sessions of an agent behind a point. */
async function openBehind(
  spec: AgentSpec,
  scope: Scope,
  { limit, point }: { readonly limit: number; readonly point: Point },
): Promise<readonly Source[]> {
  const [updatedAt, seen] = point;
  const isBehind = (session: SessionInfo): boolean =>
    session.updatedAt < updatedAt ||
    (session.updatedAt === updatedAt &&
      !seen.some(([agent, id]) => agent === spec.name && id === session.sessionId));
  const items: SessionInfo[] = [];
  let cursor: string | null | undefined;
  for (;;) {
    const [source] = await openSource(spec, scope, { limit, cursor });
    if (source === undefined) return [];
    const { next, items: some } = source.page;
    items.push(...some.filter(isBehind));
    const isEnough = items.length > limit || next === undefined;
    if (isEnough) return [{ ...source, page: { items, ...(next !== undefined && { next }) } }];
    cursor = next;
  }
}

async function openSource(
  spec: AgentSpec,
  scope: Scope,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null | undefined },
): Promise<readonly Source[]> {
  const sessions = spec.store?.timeline;
  if (sessions === undefined) return [];
  const at = cursor ?? undefined;
  const page = await sessions.listSessions(scope, waitingPage(limit, at));
  return [{ spec, sessions, scope, page, cursor: at }];
}

function waitingPage(
  limit: number,
  cursor: string | undefined,
): ListOptions & { readonly waiting: true } {
  return { limit, waiting: true, ...(cursor !== undefined && { cursor }) };
}

/** Where the list of an agent continues after so many of its page; `undefined`: at its beginning. */
async function continueAfter(
  { sessions, scope, page, cursor }: Source,
  taken: number,
): Promise<string | null | undefined> {
  if (taken === page.items.length) return page.next ?? null;
  if (taken === 0) return cursor;
  // Only a store can say where its list continues. If it has changed since, this page is read again: better twice than never.
  const again = await sessions.listSessions(scope, waitingPage(taken, cursor));
  const isSame = again.items.at(-1)?.sessionId === page.items[taken - 1]?.sessionId;
  return isSame ? (again.next ?? null) : cursor;
}

function parseCursor(cursor: string | undefined): {
  readonly cursors: Cursors;
  readonly point?: Point;
} {
  if (cursor === undefined) return { cursors: {} };
  try {
    const read: unknown = JSON.parse(cursor);
    if (isPoint(read)) return { cursors: {}, point: read };
    const isFit = (value: unknown): boolean => value === null || typeof value === 'string';
    const isRecord = typeof read === 'object' && read !== null && !Array.isArray(read);
    if (isRecord && Object.values(read).every(isFit)) {
      return { cursors: Object.assign(Object.create(null), read) };
    }
  } catch {
    // Falls through: it is no cursor of ours.
  }
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The cursor is not one that listInterrupts of an app gave. Start again without one.',
  );
}

function isPoint(value: unknown): value is Point {
  if (!Array.isArray(value) || value.length !== 2 || !Array.isArray(value[1])) return false;
  const isPair = (each: unknown): boolean =>
    Array.isArray(each) && each.length === 2 && each.every((part) => typeof part === 'string');
  return !Number.isNaN(Date.parse(String(value[0]))) && value[1].every(isPair);
}
