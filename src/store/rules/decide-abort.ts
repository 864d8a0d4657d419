import type { RunMode } from '../contract/store.ts';
import { isExpired, type Lease } from './holder.ts';

/** What an abort does to an open run: it ends with an aborted snapshot, or is asked to stop and reads as `status` until it does. */
export type AbortDecision =
  | { readonly kind: 'ends' }
  | { readonly kind: 'stops'; readonly status: 'pending' | 'expired' };

/** Decides what an abort does to an open run: see {@link AbortSupport.abortSnapshot}. */
export function decideAbort(
  run: Lease & { readonly mode: RunMode; readonly isListed: boolean },
  now: number,
): AbortDecision {
  const expired = isExpired(run, now);
  // No caller waits for a detached run, nor for an accepted one whose worker is gone.
  if (run.isListed || (run.mode === 'accepted' && expired)) return { kind: 'ends' };
  return { kind: 'stops', status: expired ? 'expired' : 'pending' };
}
