import type { Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';

/** What one turn has used. */
export interface Spent {
  /** Tokens and cost. */
  readonly usage: Usage;
  /** Number of tool calls. */
  readonly toolCalls: number;
}

/** What a run has used up to a checkpoint, so that a takeover continues the count. */
export interface RunUsage {
  /** The turn that the checkpoint lies in. */
  readonly turn: Spent;
  /** All turns of the invocation before it. */
  readonly before: Usage;
  /** The session's totals without the turn, where an agent limits them. */
  readonly totals?: Totals;
}
