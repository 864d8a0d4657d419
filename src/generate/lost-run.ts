import { isWaymarkError } from '../core/error.ts';

/**
 * Whether a call ends because another worker has taken over its run. The work that it started elsewhere then belongs to that
 * worker: cancel it only if the turn was stopped.
 */
export function isLostRun({ aborted, reason }: AbortSignal): boolean {
  return aborted && isWaymarkError(reason) && reason.status === 'ABORTED';
}
