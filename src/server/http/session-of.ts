import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { type Caller, ownerOf } from './auth.ts';

/** Finds the session that a snapshot or run belongs to; `undefined` when this caller has no such snapshot. */
export type SessionOf = (
  agent: Agent,
  snapshotId: string,
  caller: Caller,
) => Promise<string | undefined>;

/** How many answers are remembered: a snapshot never moves to another session. */
const maxKnown = 10_000;

// A state can be long, and is not needed.
const leastOfState = { messages: { last: 1 } };

/** Reads the session of a snapshot from the agent's store, once for each snapshot. */
export function createSessionOf(): SessionOf {
  const known = new Map<string, string>();
  return async (agent, snapshotId, caller) => {
    if (!isSnapshotId(snapshotId)) return undefined;
    const scope = { agent: agent.name, ...ownerOf(caller) };
    const key = JSON.stringify([scope.agent, scope.owner, snapshotId]);
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const { store } = internalsOf(agent).spec;
    const sessionId = (await store?.getSnapshot(scope, { snapshotId }, leastOfState))?.sessionId;
    if (sessionId === undefined) return undefined;
    known.set(key, sessionId);
    const [oldest] = known.size > maxKnown ? known.keys() : [];
    if (oldest !== undefined) known.delete(oldest);
    return sessionId;
  };
}
