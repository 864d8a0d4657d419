import { isWaymarkError } from '../../core/error.ts';
import type { InvocationState } from './invocation-state.ts';

/**
 * Reads or writes data of a run. If the store refuses because another worker has taken over the run, the run has not failed: it
 * is lost to this process. During a store outage a worker cannot renew its claim, so a detached run is left to the worker that
 * takes it over afterwards.
 */
export async function whileHolding<Value>(
  { run, control }: InvocationState,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const status = isWaymarkError(error) ? error.status : undefined;
    const isAway = status === 'UNAVAILABLE' && run?.detached !== undefined;
    if (isAway || status === 'ABORTED') control.markLost();
    throw error;
  }
}
