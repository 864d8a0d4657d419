import type { Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { RunUsage } from '../contract/store.ts';

/** What a run has used whose last checkpoint is a snapshot within its only turn. */
export function spentInTurn(usage: Usage | undefined, toolCalls = 0): RunUsage {
  return { turn: { usage: usage ?? {}, toolCalls }, before: {} };
}

/** The totals to continue from: those of the parent, or those of failed turns that started from it, whichever are higher. */
export function highestTotals(
  ofParent: Totals | undefined,
  ofFailed: Totals | undefined,
): Totals | undefined {
  if (ofParent === undefined || ofFailed === undefined) return ofParent ?? ofFailed;
  return {
    tokens: Math.max(ofParent.tokens, ofFailed.tokens),
    toolCalls: Math.max(ofParent.toolCalls, ofFailed.toolCalls),
  };
}
