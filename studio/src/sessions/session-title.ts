import type { SessionInfo } from '../../../src/client/index.ts';
import { shortId } from '../lib/format.ts';

/** What a session is called: its title, where it comes from, or at least its id. */
export function sessionTitle(session: SessionInfo, others: readonly SessionInfo[] = []): string {
  if (session.title) return session.title;
  const origin = session.forkedFrom;
  if (origin) {
    const from = others.find(({ sessionId }) => sessionId === origin.sessionId);
    return `Branch of ${from?.title ?? shortId(origin.sessionId)}`;
  }
  if (session.startedBy) return `Asked by ${session.startedBy.agent}`;
  return `Untitled ${shortId(session.sessionId)}`;
}
