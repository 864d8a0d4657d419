import type { SessionInfo } from '../../../src/client/index.ts';
import { shortId } from '../lib/format.ts';

/** The label of a session: its title, its origin, the message of a first turn that still runs, or its id. */
export function sessionTitle(
  session: SessionInfo,
  others: readonly SessionInfo[] = [],
  asked?: string,
): string {
  if (session.title) return session.title;
  const origin = session.forkedFrom;
  if (origin) {
    const from = others.find(({ sessionId }) => sessionId === origin.sessionId);
    return `Fork of ${from?.title ?? shortId(origin.sessionId)}`;
  }
  if (session.startedBy) return `Started by ${session.startedBy.agent}`;
  return asked ?? `Untitled ${shortId(session.sessionId)}`;
}
