import type { Lookup } from '../../protocol/ids.ts';
import type { MessageOptions } from '../../protocol/message-page.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';

/** Milliseconds after its last write at which a pending snapshot that was written by `saveSnapshot` reads `expired`. */
export const savedPendingTtl = 60_000;

/** The least a store can be: plain snapshots, saved by an atomic read-modify-write. */
export interface SnapshotStore {
  /**
   * The snapshot with its plain state, `orphaned` and `expired` worked out and `metadata.snapshotId` on the last
   * message of each turn; `undefined` when there is none in this scope. The reserved id of a turn that is being
   * worked on reads as `pending`. `{ sessionId }` gives the session's latest saved state that succeeded. With `messages`, only
   * that page of the messages is read, and `messageRange` says which one it is; a store may ignore it and read all of them.
   */
  getSnapshot(
    scope: Scope,
    lookup: Lookup,
    options?: MessageOptions,
  ): Promise<Snapshot | undefined>;
  /**
   * Reads the snapshot, asks `mutate` what it should become, and writes that, as one atomic step.
   * `mutate` is synchronous, has no side effects and may be called again; `undefined` from it means "leave it".
   * A snapshot with a terminal status stays as it is, but for its label. A succeeded one becomes the head of its session,
   * which is created when it is new. The store works out index, hash, times and `orphaned`. `ABORTED` while the session is
   * being worked on; an expired attached run gives way. Resolves to what is stored afterwards.
   */
  saveSnapshot(
    scope: Scope,
    snapshotId: string,
    mutate: (current: Snapshot | undefined) => Snapshot | undefined,
  ): Promise<Snapshot | undefined>;
  /** Releases files, connections and timers. A second call waits for the first one. */
  close?(): Promise<void>;
}

/**
 * Whose data. Ids live under (owner, agent): another agent's or another owner's id is simply unknown. Snapshot ids are
 * UUIDs, unique over the whole store; session ids are the callers' and unique within a scope. See ids.ts.
 */
export interface Scope {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner; without it, sessions that have none. */
  readonly owner?: string;
}
