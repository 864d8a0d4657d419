import type { Usage } from '../../protocol/turn.ts';

/** The usage of one model by one agent. */
export interface SpendEntry {
  /** The agent that made the calls: that of the session, or a sub-agent inside it. */
  readonly agent: string;
  /** The name of the model; empty where the calls did not go through the app. */
  readonly model: string;
  /** Number of model calls. */
  readonly calls: number;
  /** Their tokens and cost. */
  readonly usage: Usage;
}

/** The spend of a session, its sub-agents included. */
export interface Spend {
  /** The owner. */
  readonly owner?: string;
  /** The agent that the session belongs to. */
  readonly agent: string;
  /** The session. */
  readonly sessionId: string;
  /** The spend by model. */
  readonly entries: readonly SpendEntry[];
  /** Ids of reservations that are removed in the same step, because their calls have ended. */
  readonly settles?: readonly string[];
}

/** The part of a session's and owner's budgets that a model call reserves before it begins. */
export interface SpendReservation extends Omit<Spend, 'entries' | 'settles'> {
  /** A unique id, by which {@link Spend.settles} names it. */
  readonly id: string;
  /** The run of the session that makes the call. A session has one run at a time, so the calls of its other ones count as lost. */
  readonly holder: string;
  /** Tokens and money that the call may use. */
  readonly amounts: readonly SpendAmount[];
  /** Milliseconds after which the call counts as lost, because its process has probably died. */
  readonly ttl: number;
  /** The conditions: all of them must hold. */
  readonly bounds: readonly SpendBound[];
}

/** An amount of tokens, or of money. */
export interface SpendAmount {
  /** The currency. @default tokens */
  readonly currency?: string;
  /** Tokens, or micro-units of the currency. */
  readonly amount: number;
  /** Whether the call cannot use more. If it is lost, it then counts as spent, because it may have been billed; a guess is dropped. */
  readonly isBound: boolean;
}

/** A limit when a reservation is made, for the spend and the reservations that are not settled. */
export interface SpendBound {
  /** Whether the session of the reservation counts, or all sessions of its owner. */
  readonly of: 'session' | 'owner';
  /** The first day that counts, as in {@link SpendFilter}. @default everything */
  readonly sinceDay?: number;
  /** The currency that is counted. @default tokens */
  readonly currency?: string;
  /** The most that may be counted before the reservation is added. It may be negative. */
  readonly most: number;
  /** Counts at least this as spent: a fork has used the tokens of its path. @default 0 */
  readonly spentAtLeast?: number;
}

/** The counts that a bound refers to. */
export interface SpendCount {
  /** The spend, and the reservations of lost calls. */
  readonly spent: number;
  /** The reservations of calls that are under way. */
  readonly reserved: number;
}

/** Narrows what is summed up. What is given must fit. */
export interface SpendFilter {
  /** An owner; `null`: sessions without one. @default all */
  readonly owner?: string | null;
  /** Sessions of this agent; what sub-agents spend in them counts. */
  readonly agent?: string;
  /** The session with this id; only with `agent`. */
  readonly sessionId?: string;
  /** The first day, as the number of days since 1970-01-01 UTC. */
  readonly sinceDay?: number;
}

/** The field that sums are grouped by. */
export type SpendGroup = 'owner' | 'agent' | 'model' | 'day';

/** One sum. */
export interface SpendSum extends Pick<SpendEntry, 'calls' | 'usage'> {
  /** The owner (empty: none), agent, model, or day (`2026-11-16`). */
  readonly key: string;
}

/**
 * The spend. It only ever grows: restoring an earlier snapshot or deleting a session takes nothing back. Only
 * `eraseOwner` removes what an owner has spent.
 */
export interface SpendSupport {
  /**
   * Adds what was spent in a session, outside a commit: the run may be over, or belong to another worker by now. The session
   * need not exist any more.
   */
  add(spend: Spend): Promise<void>;
  /**
   * Makes a reservation if all its bounds hold, in one atomic step. Returns the counts of all bounds in their order if one does not
   * hold, and `undefined` if the reservation is made. It counts until it is settled, also in other processes. Without this method,
   * budgets are checked before a call, and concurrent calls can exceed them.
   */
  reserve?(reservation: SpendReservation): Promise<readonly SpendCount[] | undefined>;
  /** The sum of everything that fits; no keys. */
  total(filter: SpendFilter): Promise<Usage>;
  /** Sums by owner, agent, model or day, by key ascending. */
  sums(by: SpendGroup, filter: SpendFilter): Promise<readonly SpendSum[]>;
}
