import type { AgentTypes, SessionOf } from '../api/types.ts';
import { isWaymarkError } from '../core/error.ts';
import type { Message } from '../protocol/message.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { SessionData, StoreAgent } from './session-data.ts';

/** What a store needs to know of a session. */
export type ReadSession<Types extends AgentTypes> = Pick<
  SessionOf<Types>,
  'sessionId' | 'headId' | 'title' | 'running' | 'state' | 'messageRange'
>;

/** A session with its latest state; from its head snapshot where the agent's store keeps no sessions. */
export async function readSession<Types extends AgentTypes>(
  agent: StoreAgent<Types>,
  sessionId: string,
  options: MessageOptions & { readonly signal: AbortSignal },
): Promise<ReadSession<Types> | undefined> {
  try {
    return await agent.getSession(sessionId, options);
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'FAILED_PRECONDITION') throw error;
  }
  const head = await agent.getSnapshot({ sessionId }, options);
  if (!head) return undefined;
  const { snapshotId, state, messageRange } = head;
  return {
    sessionId,
    headId: snapshotId,
    ...(state && { state }),
    ...(messageRange && { messageRange }),
  };
}

/** What was sent to a run that is still open, as far as it can be read: the first of what it has added. */
export async function readSent<Types extends AgentTypes>(
  agent: StoreAgent<Types>,
  runId: string,
  { from, messages }: SessionData<Types>,
  options: MessageOptions & { readonly signal: AbortSignal },
): Promise<readonly Message[]> {
  const run = await agent.getSnapshot({ snapshotId: runId }, options).catch(() => undefined);
  const end = from + messages.length - (run?.messageRange?.from ?? 0);
  const added = run?.state?.messages?.slice(Math.max(0, end)) ?? [];
  const answer = added.findIndex(({ role }) => role !== 'user');
  return answer === -1 ? added : added.slice(0, answer);
}
