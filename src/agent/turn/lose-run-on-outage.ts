import { isWaymarkError } from '../../core/error.ts';
import type { InvocationState } from './invocation-state.ts';

/**
 * Reads or writes what belongs to a run. While the store is away nobody can hold a run: a detached one is left to whoever
 * takes it over when the store is back, and does not fail because of it.
 */
export async function loseRunOnOutage<Value>(
  { run, control }: InvocationState,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const isAway = isWaymarkError(error) && error.status === 'UNAVAILABLE';
    if (isAway && run?.detached !== undefined) control.markLost();
    throw error;
  }
}
