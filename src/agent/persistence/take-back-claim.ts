import { isWaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { timeoutSignal } from '../../core/time/timeout.ts';
import type { ClaimRequest, RunSupport, Scope } from '../../store/contract/store.ts';
import { retryWhileUnavailable, unknownOutcome } from './outage.ts';

/**
 * Takes back a claim whose answer was lost, and throws the error that it was lost with. An attached run would only be waited
 * for until it expires. Another worker would take over and run an accepted one, so its caller gets the error only once the claim is
 * certainly gone.
 */
export async function takeBackClaim(
  runs: RunSupport,
  scope: Scope,
  { runId, mode }: Pick<ClaimRequest, 'runId' | 'mode'>,
  { error, clock, ttl }: { readonly error: unknown; readonly clock: Clock; readonly ttl: number },
): Promise<never> {
  const release = (): Promise<void> => runs.release({ runId, attempt: 1 });
  if (mode === 'attached') {
    release().catch(() => {});
    throw error;
  }
  const over = timeoutSignal(clock, ttl);
  try {
    const isOpen = await retryWhileUnavailable(clock, over.signal, async () => {
      try {
        await release();
        return false;
      } catch (cause) {
        if (!isWaymarkError(cause) || cause.status !== 'ABORTED') throw cause;
        // It was never written, or another worker has already taken it over.
        return (await runs.getRun(scope, runId)) !== undefined;
      }
    });
    if (!isOpen) throw error;
  } catch (cause) {
    throw cause === error ? error : unknownOutcome(runId, cause);
  } finally {
    over.release();
  }
  throw unknownOutcome(runId, error);
}
