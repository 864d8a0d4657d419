import type { Totals } from '../../protocol/usage.ts';
import type { SessionState } from '../../session/session-state.ts';
import type {
  Claim,
  ClaimRequest,
  Committed,
  CommitWrite,
  LoadedState,
  Lookup,
  ParentRef,
  RequestOutcome,
  RunEvent,
  RunRef,
  Scope,
  StateBase,
} from '../../store/contract/store.ts';

export interface TurnRequest extends Omit<ClaimRequest, 'ttl' | 'worker'> {
  /** The state that was loaded before the claim, so that it need not be loaded again. */
  readonly loaded?: StateBase;
}

/** Where a turn starts: its session, the state it builds on, and its claim, if the store has claims. */
export interface TurnBase {
  readonly sessionId: string;
  readonly run?: RunRef | undefined;
  readonly parent?: ParentRef | undefined;
  /** The last saved state, as it was saved. */
  readonly base?: StateBase | undefined;
  /** The state of the base, upgraded to the agent's present schema. Absent in an empty session. */
  readonly state?: SessionState | undefined;
  /** The last snapshot on the way here: the base, unless that is only the latest saved state. */
  readonly listed?: StateBase | undefined;
  /** The index that the next snapshot will have. */
  readonly nextIndex: number;
  /** Usage of failed turns that started from the parent; see {@link Claim.failedTotals}. */
  readonly failedTotals?: Totals | undefined;
  /** Earlier turns have left messages in their inboxes. */
  readonly steered?: true | undefined;
  /** The claim has accepted a detached run, with its pending snapshot: see {@link Claim.detached}. */
  readonly detached?: true | undefined;
}

/**
 * How an agent reads and writes sessions, whatever its store can do: with claims, with plain snapshots only, or, for a
 * client-managed agent, not at all. The turn loop knows only this.
 */
export interface TurnStore {
  /** Loads a state without claiming its session. */
  load(scope: Scope, lookup: Lookup): Promise<LoadedState | undefined>;
  /** Accepts a turn. */
  begin(scope: Scope, request: TurnRequest): Promise<TurnBase>;
  commit(scope: Scope, turnBase: TurnBase, write: CommitWrite): Promise<Committed>;
  /** Ends a turn without a snapshot; the events are written with it. */
  release(
    turnBase: TurnBase,
    events?: readonly RunEvent[],
    requests?: RequestOutcome,
  ): Promise<void>;
}
