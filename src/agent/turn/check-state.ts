import { toWaymarkError } from '../../core/error.ts';
import { parse } from '../../core/schema/schema.ts';
import { checkCustomSize, maxCustomLength } from '../../store/rules/size-limits.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Outcome } from './turn-state.ts';

/**
 * Refuses a custom state that is too large, or that no longer fits its schema after `updateCustom`: once saved, it could not be
 * loaded again. An unchanged state is not checked.
 */
export async function checkState(invocation: InvocationState): Promise<void> {
  const { spec, working } = invocation;
  const { custom } = working.state;
  if (custom === undefined || !hasNewCustom(invocation)) return;
  // The state is saved with its hash, and hashing a document counts its characters.
  if (spec.store !== undefined) working.hash();
  checkCustomSize(custom, spec.limits.session?.customLength ?? maxCustomLength);
  if (spec.stateSchema === undefined) return;
  await parse(spec.stateSchema, custom, 'The custom state at the end of the turn');
}

/** Whether the turn has changed the custom state, which is then checked. */
export function hasNewCustom({ working, lineage }: InvocationState): boolean {
  return working.state.custom !== lineage.fallbackState.custom;
}

/** The outcome of a turn after its state was checked. */
export async function withCheckedState(
  invocation: InvocationState,
  outcome: Outcome,
): Promise<Outcome> {
  // No session continues from a failed turn, or from a detached run that was stopped.
  const isLeft = outcome.kind === 'stopped' && invocation.run?.detached !== undefined;
  if (outcome.kind === 'failed' || outcome.kind === 'lost' || isLeft) return outcome;
  try {
    await checkState(invocation);
    return outcome;
  } catch (error) {
    return { kind: 'failed', error: toWaymarkError(error) };
  }
}
