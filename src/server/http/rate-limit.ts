import { WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';

/** Counts requests per caller and refuses those over the rate. */
export interface RateLimit {
  /** Takes one. `RESOURCE_EXHAUSTED`, with `details.retryAfter` in seconds, when this caller has used up its minute. */
  check(caller: string): void;
  /** As {@link RateLimit.check}, but takes nothing. */
  look(caller: string): void;
  /** Takes one, if there is one. */
  spend(caller: string): void;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** How many callers are remembered before those with a full bucket are forgotten. */
const forgetAbove = 10_000;

/** A token bucket per caller: a minute's worth may come at once, then they come in evenly. */
export function createRateLimit(
  perMinute: number | undefined,
  clock: Clock,
  what = 'requests',
): RateLimit {
  if (perMinute === undefined) return { check() {}, look() {}, spend() {} };
  const buckets = new Map<string, Bucket>();
  const perMs = perMinute / 60_000;
  let forgetAt = forgetAbove;

  const filled = ({ tokens, at }: Bucket, now: number): number =>
    Math.min(perMinute, tokens + Math.max(0, now - at) * perMs);

  // A full bucket says nothing that a new one would not. The next pass waits until there are twice as many, so that a
  // flood of callers does not pay for a pass each.
  const forget = (now: number): void => {
    if (buckets.size <= forgetAt) return;
    for (const [caller, bucket] of buckets) {
      if (filled(bucket, now) >= perMinute) buckets.delete(caller);
    }
    forgetAt = Math.max(forgetAbove, buckets.size * 2);
  };

  const left = (caller: string, now: number): number => {
    const bucket = buckets.get(caller);
    if (!bucket) return perMinute;
    // After a clock was set back, callers do not wait until it catches up.
    if (bucket.at > now) bucket.at = now;
    return filled(bucket, now);
  };

  const take = (caller: string, tokens: number, now: number): void => {
    const bucket = buckets.get(caller);
    if (bucket) Object.assign(bucket, { tokens: tokens - 1, at: now });
    else {
      buckets.set(caller, { tokens: tokens - 1, at: now });
      forget(now);
    }
  };

  const require = (tokens: number): void => {
    if (tokens >= 1) return;
    const retryAfter = Math.ceil((1 - tokens) / perMs / 1000);
    throw new WaymarkError(
      'RESOURCE_EXHAUSTED',
      `More than ${perMinute} ${what} in a minute. Try again in ${retryAfter} s.`,
      { details: { retryAfter } },
    );
  };

  return {
    check(caller) {
      const now = clock.now();
      const tokens = left(caller, now);
      require(tokens);
      take(caller, tokens, now);
    },
    look(caller) {
      require(left(caller, clock.now()));
    },
    spend(caller) {
      const now = clock.now();
      const tokens = left(caller, now);
      if (tokens >= 1) take(caller, tokens, now);
    },
  };
}
