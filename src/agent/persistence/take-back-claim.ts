import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { timeoutSignal } from '../../core/time/timers.ts';
import type { ClaimRequest, RunSupport, Scope } from '../../store/contract/store.ts';
import { retryWhileUnavailable, unknownOutcome } from './outage.ts';

/**
 * Takes back a claim whose answer was lost, and throws the error that it was lost with. An attached run would only be waited
 * for until it expires. Another worker would take over and run an accepted one, so its caller gets the error only once the claim is
 * certainly gone. A detached run that was written stays accepted: it is handed over, and the error names it as a known request.
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
        if (mode === 'detached') await handOverWritten(runs, scope, runId);
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
    throw cause === error || isKnown(cause) ? cause : unknownOutcome(runId, cause);
  } finally {
    over.release();
  }
  throw unknownOutcome(runId, error);
}

/** Hands a detached run over if it was written, and throws the error of a known request. */
async function handOverWritten(runs: RunSupport, scope: Scope, runId: string): Promise<void> {
  const run = await runs.getRun(scope, runId);
  if (run?.mode !== 'detached') return;
  const { sessionId } = run;
  // Another worker may have it already.
  await runs.handOver({ runId, attempt: 1 }).catch(() => {});
  throw new WaymarkError('ALREADY_EXISTS', `The run was accepted, as "${runId}".`, {
    details: { request: { runId, sessionId } },
  });
}

function isKnown(error: unknown): boolean {
  return isWaymarkError(error) && error.status === 'ALREADY_EXISTS';
}
