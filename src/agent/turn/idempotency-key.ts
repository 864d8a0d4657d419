import { sha256 } from '../../core/json/hash.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { InvocationState } from './invocation-state.ts';

/**
 * A key for the effects of one tool call, the same for every attempt at its run. It is made of the run, the number of messages that
 * are not from the user, the tool, and how often the model asked for the tool in this message. User messages are left out, because a
 * second attempt may take a steered message earlier. The provider's id of the request is left out, because a second attempt asks the
 * model again and gets new ids. If the client holds the state, an answer to an
 * interrupt that is sent twice makes two runs, so the answered state is used instead of the run.
 */
export function idempotencyKeyOf(invocation: InvocationState, tool: string): string {
  const { run, turn, working, position } = invocation;
  const origin = turn?.answeredKey ?? run?.runId ?? position.sessionId;
  const { history } = working.state;
  const place = `${origin}\n${history.length - history.countUserMessages()}\n${tool}`;
  const count = turn?.toolKeys.get(place) ?? 0;
  turn?.toolKeys.set(place, count + 1);
  return sha256(`${place}\n${count}`);
}

/** Whether a session is that of a sub-agent in the foreground: its id is the key of the tool call that it works on. */
export function isInForeground({
  sessionId,
  startedBy,
}: Pick<SessionInfo, 'sessionId' | 'startedBy'>): boolean {
  return startedBy !== undefined && /^[0-9a-f]{64}$/.test(sessionId);
}
