import type { Scope, TimelineSupport } from '../../store/contract/store.ts';
import type { AgentHost } from '../persistence/host.ts';

const mark = ' (fork)';

/** Calls a fork after the session it was forked from. A failure is only reported: the fork is there without a title, too. */
export async function nameFork(
  sessions: TimelineSupport,
  scope: Scope,
  sessionId: string,
  host: AgentHost,
): Promise<void> {
  try {
    const source = (await sessions.getSession(scope, sessionId))?.forkedFrom;
    const title = source && (await sessions.getSession(scope, source.sessionId))?.title;
    if (title === undefined) return;
    const defaultTitle = title.endsWith(mark) ? title : `${title}${mark}`;
    await sessions.updateSession(scope, sessionId, { defaultTitle });
  } catch (error) {
    host.report(error, { phase: 'hook', agent: scope.agent, sessionId });
  }
}
