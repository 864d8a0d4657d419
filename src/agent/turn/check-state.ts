import { toWaymarkError } from '../../core/error.ts';
import { parse } from '../../core/schema/schema.ts';
import { checkCustomSize, maxCustomLength } from '../../store/rules/size-limits.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Outcome } from './turn-state.ts';

/**
 * Refuses a custom state that is too large, or was changed piece by piece and no longer fits its schema: saved, it could
 * not be loaded again. Nothing is checked where nothing has changed.
 */
export async function checkState({ spec, working, lineage }: InvocationState): Promise<void> {
  const { custom } = working.state;
  if (custom === undefined || custom === lineage.fallbackState.custom) return;
  checkCustomSize(custom, spec.limits.session?.customLength ?? maxCustomLength);
  if (spec.stateSchema === undefined) return;
  await parse(spec.stateSchema, custom, 'The custom state at the end of the turn');
}

/** What a turn came to, once its state has been checked. */
export async function withCheckedState(
  invocation: InvocationState,
  outcome: Outcome,
): Promise<Outcome> {
  // Nobody goes on from a failed turn, nor from a detached one that was stopped.
  const isLeft = outcome.kind === 'stopped' && invocation.run?.detached !== undefined;
  if (outcome.kind === 'failed' || outcome.kind === 'lost' || isLeft) return outcome;
  try {
    await checkState(invocation);
    return outcome;
  } catch (error) {
    return { kind: 'failed', error: toWaymarkError(error) };
  }
}
