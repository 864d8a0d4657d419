import { WaymarkError } from '../../core/error.ts';
import type { WaitingSession } from '../../protocol/requests.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { ListOptions, Scope, TimelineSupport } from '../../store/contract/store.ts';
import type { Agent } from '../spec/agent.ts';
import { type AgentSpec, fullStore, scopeOf } from '../spec/spec.ts';
import { internalsOf } from './create-agent.ts';
import { defaultLimit, readWaiting } from './list-waiting.ts';

/** Where the list of each agent continues, by its name; `null`: it is at its end. */
type Cursors = Readonly<Record<string, string | null>>;

/** An agent whose sessions are listed. */
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
  agents: readonly Agent[],
  {
    owner,
    limit = defaultLimit,
    cursor,
  }: ListOptions & { readonly owner?: string | undefined } = {},
): Promise<Page<WaitingSession>> {
  const cursors = parseCursors(cursor);
  const opened = agents
    .map((agent) => internalsOf(agent).spec)
    .filter(({ name }) => cursors[name] !== null)
    .map((spec) => openSource(spec, scopeOf(spec, owner), { limit, cursor: cursors[spec.name] }));
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
  const next: Record<string, string | null> = { ...cursors };
  for (const source of sources) {
    const taken = found.filter((each) => each.source === source).length;
    const at = await continueAfter(source, taken);
    if (at !== undefined) next[source.spec.name] = at;
  }
  const isMore = sources.some(({ spec }) => next[spec.name] !== null);
  return { items: items.flat(), ...(isMore && { next: JSON.stringify(next) }) };
}

async function openSource(
  spec: AgentSpec,
  scope: Scope,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null | undefined },
): Promise<readonly Source[]> {
  const sessions = fullStore(spec)?.timeline;
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

function parseCursors(cursor: string | undefined): Cursors {
  if (cursor === undefined) return {};
  try {
    const read: unknown = JSON.parse(cursor);
    const isFit = (value: unknown): boolean => value === null || typeof value === 'string';
    const isRecord = typeof read === 'object' && read !== null && !Array.isArray(read);
    if (isRecord && Object.values(read).every(isFit)) {
      return Object.assign(Object.create(null), read);
    }
  } catch {
    // Falls through: it is no cursor of ours.
  }
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The cursor is not one that listInterrupts of an app gave. Start again without one.',
  );
}
