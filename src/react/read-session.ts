import type { AgentTypes, SessionOf } from '../api/types.ts';
import { isWaymarkError } from '../core/error.ts';
import type { Message } from '../protocol/message.ts';
import type { SessionData, StoreAgent } from './session-data.ts';

/** What a store needs to know of a session. */
export type ReadSession<Types extends AgentTypes> = Pick<
  SessionOf<Types>,
  'sessionId' | 'headId' | 'title' | 'running' | 'state'
>;

/** A session with its latest state; from its head snapshot where the agent's store keeps no sessions. */
export async function readSession<Types extends AgentTypes>(
  agent: StoreAgent<Types>,
  sessionId: string,
  signal: AbortSignal,
): Promise<ReadSession<Types> | undefined> {
  try {
    return await agent.getSession(sessionId, { signal });
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'FAILED_PRECONDITION') throw error;
  }
  const head = await agent.getSnapshot({ sessionId }, { signal });
  if (!head) return undefined;
  const { snapshotId, state } = head;
  return { sessionId, headId: snapshotId, ...(state && { state }) };
}

/** What was sent to a run that is still open, as far as it can be read: the first of what it has added. */
export async function readSent<Types extends AgentTypes>(
  agent: StoreAgent<Types>,
  runId: string,
  sessionData: SessionData<Types>,
  signal: AbortSignal,
): Promise<readonly Message[]> {
  const run = await agent.getSnapshot({ snapshotId: runId }, { signal }).catch(() => undefined);
  const added = run?.state?.messages?.slice(sessionData.messages.length) ?? [];
  const answer = added.findIndex(({ role }) => role !== 'user');
  return answer === -1 ? added : added.slice(0, answer);
}
