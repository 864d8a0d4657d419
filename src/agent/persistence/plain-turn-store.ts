import { WaymarkError } from '../../core/error.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { fromPlainState, isStateHash, toPlainState } from '../../session/session-state.ts';
import type {
  CommitWrite,
  LoadedState,
  Lookup,
  Scope,
  SnapshotStore,
} from '../../store/contract/store.ts';
import { headMoved } from '../../store/rules/errors.ts';
import type { TurnBase, TurnStore } from '../spec/turn-store.ts';
import type { TurnStoreOptions } from './claim-turn-store.ts';

/**
 * Over a store that can only read and save snapshots. Two turns at once on one session are not kept apart: the agent's
 * metadata says so.
 */
export function plainTurnStore(
  store: SnapshotStore,
  { host: { clock }, upgrade }: TurnStoreOptions,
): TurnStore {
  const read = async (scope: Scope, lookup: Lookup): Promise<Snapshot | undefined> => {
    const snapshot = await store.getSnapshot(scope, lookup);
    if (snapshot === undefined) return undefined;
    checkAnswer(lookup, snapshot);
    const { event, parentId, sessionId } = snapshot;
    if ('snapshotId' in lookup || event !== 'toolIterationEnd') return snapshot;
    // Every such store makes a snapshot the head as soon as it is saved. One within a turn is there only if the turn failed.
    return await beforeTurn(scope, { parentId, sessionId });
  };
  const beforeTurn = async (
    scope: Scope,
    { parentId, sessionId }: Pick<Snapshot, 'parentId' | 'sessionId'>,
  ): Promise<Snapshot | undefined> => {
    if (parentId === undefined) return undefined;
    const parent = await read(scope, { snapshotId: parentId });
    if (parent === undefined || parent.sessionId !== sessionId) return undefined;
    return parent.event === 'toolIterationEnd' ? await beforeTurn(scope, parent) : parent;
  };
  const load = async (scope: Scope, lookup: Lookup): Promise<LoadedState | undefined> => {
    const snapshot = await read(scope, lookup);
    if (snapshot === undefined) return undefined;
    const state = fromPlainState(snapshot.state ?? {});
    if (snapshot.status === 'succeeded' && !isStateHash(state, snapshot.stateHash)) {
      throw new WaymarkError(
        'DATA_LOSS',
        `Snapshot "${snapshot.snapshotId}" does not match its hash: its state was changed in the store.`,
      );
    }
    return { snapshotId: snapshot.snapshotId, state, ref: snapshot.index, snapshot };
  };
  return {
    load,
    async begin(scope, { sessionId, from, expectHead }) {
      const isNamed = from !== 'head' && from !== null;
      const found = await load(scope, isNamed ? from : { sessionId });
      if (found === undefined && isNamed) {
        throw new WaymarkError('NOT_FOUND', `No snapshot "${from.snapshotId}" in this store.`);
      }
      if (expectHead !== undefined) {
        const head = isNamed ? await load(scope, { sessionId }) : found;
        const headId = head?.snapshotId ?? null;
        if (headId !== expectHead) throw headMoved(headId);
      }
      if (found === undefined) return { sessionId, nextIndex: 0 };
      if (from === null) return { sessionId, nextIndex: found.snapshot.index + 1 };
      const { snapshot } = found;
      const { turnIndex, finishReason } = snapshot;
      const parent = {
        snapshotId: found.snapshotId,
        turnIndex,
        ...(finishReason && { finishReason }),
      };
      return {
        sessionId: snapshot.sessionId,
        parent,
        base: found,
        listed: found,
        state: await upgrade(found.state),
        nextIndex: snapshot.index + 1,
      };
    },
    async commit(scope, turnBase, write) {
      const snapshot = snapshotOf(turnBase, write, new Date(clock.now()).toISOString());
      const saved = await store.saveSnapshot(scope, write.snapshotId, () => snapshot);
      const base = { snapshotId: write.snapshotId, state: write.state, ref: snapshot.index };
      return { base, snapshot: saved ?? snapshot };
    },
    release: () => Promise.resolve(),
  };
}

/** Refuses a snapshot that was not asked for: a mistake in a store must not show one session to another. */
function checkAnswer(lookup: Lookup, { snapshotId, sessionId }: Snapshot): void {
  const isRight =
    'sessionId' in lookup ? lookup.sessionId === sessionId : lookup.snapshotId === snapshotId;
  if (isRight) return;
  const asked =
    'sessionId' in lookup ? `session "${lookup.sessionId}"` : `snapshot "${lookup.snapshotId}"`;
  throw new WaymarkError(
    'DATA_LOSS',
    `The store was asked for ${asked} and answered with another session's snapshot. Fix its getSnapshot.`,
  );
}

function snapshotOf({ sessionId }: TurnBase, write: CommitWrite, now: string): Snapshot {
  const index = typeof write.base?.ref === 'number' ? write.base.ref + 1 : 0;
  const { finishReason, error, edit, usage, parentId } = write;
  return {
    snapshotId: write.snapshotId,
    sessionId,
    ...(parentId !== undefined && { parentId }),
    index,
    turnIndex: write.turnIndex,
    event: write.event,
    status: write.status,
    ...(finishReason && { finishReason }),
    ...(error && { error }),
    ...(edit && { edit }),
    ...(usage && { usage }),
    createdAt: now,
    updatedAt: now,
    stateHash: write.stateHash,
    orphaned: false,
    state: toPlainState(write.state, { sessionId }),
  };
}
