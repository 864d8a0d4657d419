import { WaymarkError } from '../../core/error.ts';
import { sha256 } from '../../core/json/hash.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type { Scope, SnapshotStore } from '../../store/contract/store.ts';

/** An interrupted state that a client sent back with its answers. */
export interface AnsweredState {
  readonly sessionId: string;
  readonly state: SessionState;
  /** ISO 8601. */
  readonly now: string;
}

/** Names an interrupted state: the same for every copy of it that a client sends back. */
export function answeredStateKey({
  sessionId,
  state,
}: Pick<AnsweredState, 'sessionId' | 'state'>): string {
  return sha256(JSON.stringify(['waymark.answered', sessionId, hashState(state)]));
}

/**
 * Records that an interrupted state was answered; `FAILED_PRECONDITION` when it was before. The record is a snapshot without
 * content in a separate scope, so that every store can keep it in one atomic step.
 */
export async function answerOnce(
  guard: SnapshotStore,
  { agent }: Scope,
  answered: AnsweredState,
): Promise<void> {
  const id = toUuid(answeredStateKey(answered));
  // Without the owner, so that a state that reached another owner cannot be answered a second time there.
  const scope = { agent: `${agent}.answered` };
  let isFirst = false;
  await guard.saveSnapshot(scope, id, (current) => {
    isFirst = current === undefined;
    return isFirst ? recordOf(id, answered.now) : undefined;
  });
  if (isFirst) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    'This interrupt has been answered already. Continue from the state of that answer.',
  );
}

function recordOf(id: string, now: string): Snapshot {
  return {
    snapshotId: id,
    sessionId: id,
    index: 0,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: now,
    updatedAt: now,
    stateHash: hashState(emptyState),
    orphaned: false,
    state: {},
  };
}

// Version 8: an id of our own making (RFC 9562).
function toUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
