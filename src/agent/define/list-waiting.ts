import { pendingInterrupts } from '../../protocol/messages/tool-round.ts';
import type { WaitingSession } from '../../protocol/requests.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { ListOptions, Scope, TimelineSupport } from '../../store/contract/store.ts';
import { transformState, transformTitle } from '../persistence/transform.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { isInForeground } from '../turn/idempotency-key.ts';

/** How many sessions are listed at once: the state of each is read. */
export const defaultLimit = 20;

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
export async function readWaiting(
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
    {
      sessionId,
      agent: name,
      ...(title !== undefined && { title }),
      ...(headId !== undefined && { snapshotId: headId }),
      since: updatedAt,
      requests: [...requests],
    },
  ];
}
