import { isWaymarkError } from '../../core/error.ts';
import type { InvocationState } from './invocation-state.ts';

/**
 * Reads or writes data of a run. During a store outage a worker cannot renew its claim, so a detached run is left to the worker
 * that takes it over afterwards, instead of failing.
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
