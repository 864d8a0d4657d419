import type { SnapshotStore, Store } from '../../store/contract/store.ts';

/** How an agent without a store protects the state that its clients hold. */
export interface ClientStateOptions {
  /**
   * Signs the state, so that a changed one is refused. At least 32 bytes, known to the server only. To rotate it, give
   * several: the first one signs, and a signature of any of them is accepted.
   */
  readonly secret: string | readonly string[];
  /** Milliseconds after which a signed state is refused. @default no limit */
  readonly maxAge?: number;
  /** Accept a state only from the owner it was given to. @default false */
  readonly bindOwner?: boolean;
  /**
   * A store that records which interrupts have been answered, so that sending the same state and the same approval again
   * does not run the tool again. You open and close it. @default none: tools see the same `idempotencyKey` again
   */
  readonly replayGuard?: Store | SnapshotStore;
}
