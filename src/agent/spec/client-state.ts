import type { SnapshotStore, Store } from '../../store/contract/store.ts';

/** How an agent without a store protects the state that its clients hold. */
export interface ClientStateOptions {
  /**
   * Signs the state, so that a changed one is rejected. At least 32 bytes, known only to the server. To rotate it, pass
   * several: the first one signs, and signatures of all of them are accepted.
   */
  readonly secret: string | readonly string[];
  /** Milliseconds after which a signed state is rejected. @default no limit */
  readonly maxAge?: number;
  /** Accepts a state only from the owner it was issued to. @default false */
  readonly bindOwner?: boolean;
  /**
   * A store that records which interrupts have been answered, so that sending the same state and the same approval again
   * does not run the tool again. You open and close it. @default none: tools see the same `idempotencyKey` again
   */
  readonly replayGuard?: Store | SnapshotStore;
}
