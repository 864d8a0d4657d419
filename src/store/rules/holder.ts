import type { RunMode } from '../contract/store.ts';

/** How long a claim lasts. */
interface Lease {
  /** The last heartbeat, in milliseconds. */
  readonly heartbeatAt: number;
  /** Milliseconds without a heartbeat after which it has expired. */
  readonly ttl: number;
}

/** An open run as the rules see it. `Run` is the store's own handle of its row. */
export interface HolderFact<Run> extends Lease {
  /** The store's handle of the run. */
  readonly key: Run;
  /** The id of the run. */
  readonly runId: string;
  /** Whether a caller waits for it. */
  readonly mode: RunMode;
}

/** Whether a run has sent no heartbeat for as long as its ttl. */
export function isExpired({ heartbeatAt, ttl }: Lease, now: number): boolean {
  return now - heartbeatAt >= ttl;
}

/** Whether a run holds its session. An expired attached run holds nothing: no other worker can continue it. */
export function isHolder(run: Lease & { readonly mode: RunMode }, now: number): boolean {
  return run.mode !== 'attached' || !isExpired(run, now);
}

/** The effect of an abort on an open run: it ends with an aborted snapshot, or is asked to stop and reads as `status` until it does. */
type AbortDecision =
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
