import type { Usage } from '../../protocol/turn.ts';

/** What calls of one model by one agent have used. */
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

/** What was spent in a session, its sub-agents included. */
export interface Spend {
  /** The owner. */
  readonly owner?: string;
  /** The agent that the session belongs to. */
  readonly agent: string;
  /** The session. */
  readonly sessionId: string;
  /** What was spent, by model. */
  readonly entries: readonly SpendEntry[];
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

/** What sums are made by. */
export type SpendGroup = 'owner' | 'agent' | 'model' | 'day';

/** One sum. */
export interface SpendSum {
  /** The owner (empty: none), agent, model, or day (`2026-11-16`). */
  readonly key: string;
  /** Number of model calls. */
  readonly calls: number;
  /** Their tokens and cost. */
  readonly usage: Usage;
}

/**
 * What was spent. It only ever grows: restoring an earlier snapshot or deleting a session takes nothing back. Only
 * `eraseOwner` removes what an owner has spent.
 */
export interface SpendSupport {
  /**
   * Adds what was spent in a session, outside a commit: the run may be over, or belong to another worker by now. The session
   * need not exist any more.
   */
  add(spend: Spend): Promise<void>;
  /** The sum of everything that fits; no keys. */
  total(filter: SpendFilter): Promise<Usage>;
  /** Sums by owner, agent, model or day, by key ascending. */
  sums(by: SpendGroup, filter: SpendFilter): Promise<readonly SpendSum[]>;
}
