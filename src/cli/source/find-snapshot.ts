import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { AgentAccess } from './agent-access.ts';
import { pickAgent } from './open-agents.ts';

/** A snapshot and the agent it is of. */
export interface FoundSnapshot {
  readonly agent: AgentAccess;
  readonly snapshot: Snapshot;
}

/** The snapshot under an id, of whichever agent; NOT_FOUND when none has it. */
export async function findSnapshot(
  agents: readonly AgentAccess[],
  snapshotId: string,
  name?: string,
): Promise<FoundSnapshot> {
  for (const agent of name === undefined ? agents : [pickAgent(agents, name)]) {
    const snapshot = await orNothing(agent.getSnapshot({ snapshotId }));
    if (snapshot !== undefined) return { agent, snapshot: snapshot as Snapshot };
  }
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no snapshot "${snapshotId}". "waymark snapshots <session>" lists those of a session.`,
  );
}

/** The session under an id, of whichever agent; NOT_FOUND when none has it. */
export async function findSession(
  agents: readonly AgentAccess[],
  sessionId: string,
  name?: string,
): Promise<{ readonly agent: AgentAccess; readonly session: SessionInfo }> {
  for (const agent of name === undefined ? agents : [pickAgent(agents, name)]) {
    const session = await orNothing(agent.getSession(sessionId));
    if (session !== undefined) return { agent, session: session as SessionInfo };
  }
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no session "${sessionId}". "waymark sessions" lists them.`,
  );
}

/** An agent without a store, or one whose store has no timeline, has nothing by that id. */
async function orNothing<Value>(found: Promise<Value | undefined>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'FAILED_PRECONDITION') return undefined;
    throw error;
  }
}
