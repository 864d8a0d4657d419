import * as v from 'valibot';
import { invalid } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { scopeOf } from '../../protocol/ids.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { WaitingSession } from '../../protocol/requests.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { ListOptions, Scope, TimelineSupport } from '../../store/contract/store.ts';
import { checkLimit } from '../../store/rules/page.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { transformState, transformTitle } from '../persistence/transform.ts';
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

/**
 * Where the list continues: the time of the last session of a page, and the agents and ids of the sessions of that time that were on
 * it. The cursors of many agents would not fit into an address, so the lists are read from their beginning to continue there.
 */
const pointShape = v.tuple([
  v.pipe(
    v.string(),
    v.check((time) => !Number.isNaN(Date.parse(time))),
  ),
  v.array(v.tuple([v.string(), v.string()])),
]);

type Point = v.InferOutput<typeof pointShape>;

/** How many sessions are read at once on the way to a point. */
const batchSize = 200;

interface Found {
  readonly spec: AgentSpec;
  readonly sessions: TimelineSupport;
  readonly scope: Scope;
  readonly session: SessionInfo;
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
  checkLimit(limit);
  const point = parseCursor(cursor);
  const lists = await Promise.all(
    specs.map((spec) => listBehind(spec, scopeOf(spec, owner), { limit, point })),
  );
  const all = lists
    .flat()
    .sort((a, b) => Date.parse(b.session.updatedAt) - Date.parse(a.session.updatedAt));
  const found = all.slice(0, limit);
  const read = found.map(({ spec, sessions, scope, session }) =>
    readWaiting(spec, sessions, scope, session),
  );
  const items = (await Promise.all(read)).flat();
  return all.length === found.length
    ? { items }
    : { items, next: JSON.stringify(pointAfter(found, point)) };
}

/** The waiting sessions of an agent behind a point: one more than fits on the page, if there are so many. */
async function listBehind(
  spec: AgentSpec,
  scope: Scope,
  { limit, point }: { readonly limit: number; readonly point: Point | undefined },
): Promise<readonly Found[]> {
  const sessions = spec.store?.timeline;
  if (sessions === undefined) return [];
  const isBehind = ({ updatedAt, sessionId }: SessionInfo): boolean =>
    point === undefined ||
    updatedAt < point[0] ||
    (updatedAt === point[0] &&
      !point[1].some(([agent, id]) => agent === spec.name && id === sessionId));
  const found: Found[] = [];
  const most = Math.max(limit, point === undefined ? 0 : batchSize);
  for (let cursor: string | undefined; ; ) {
    const page = await sessions.listSessions(scope, {
      limit: most,
      waiting: true,
      ...(cursor !== undefined && { cursor }),
    });
    for (const session of page.items) {
      if (isBehind(session)) found.push({ spec, sessions, scope, session });
    }
    if (found.length > limit || page.next === undefined) return found;
    cursor = page.next;
  }
}

/** Where the list continues after the sessions of a page, of which there is at least one. */
function pointAfter(found: readonly Found[], before: Point | undefined): Point {
  const updatedAt = found.at(-1)?.session.updatedAt ?? '';
  const seen = found
    .filter(({ session }) => session.updatedAt === updatedAt)
    .map(({ spec, session }): [string, string] => [spec.name, session.sessionId]);
  return [updatedAt, before?.[0] === updatedAt ? [...before[1], ...seen] : seen];
}

function parseCursor(cursor: string | undefined): Point | undefined {
  if (cursor === undefined) return undefined;
  try {
    return v.parse(pointShape, JSON.parse(cursor));
  } catch {
    throw invalid('Invalid cursor. Start again without one.');
  }
}
