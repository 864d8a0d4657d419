import type { Clock } from '../core/clock.ts';
import { WaymarkError } from '../core/error.ts';

/** Counts requests per caller and refuses those that come too fast. */
export interface RateLimit {
  /** `RESOURCE_EXHAUSTED`, with `details.retryAfter` in seconds, when this caller has used up its minute. */
  check(caller: string): void;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** How many callers are remembered before those with a full bucket are forgotten. */
const forgetAbove = 10_000;

/** A token bucket per caller: a minute's worth may come at once, then they come in evenly. */
export function createRateLimit(perMinute: number | undefined, clock: Clock): RateLimit {
  if (perMinute === undefined) return { check() {} };
  const buckets = new Map<string, Bucket>();
  const perMs = perMinute / 60_000;

  const filled = ({ tokens, at }: Bucket, now: number): number =>
    Math.min(perMinute, tokens + Math.max(0, now - at) * perMs);

  // A bucket that is full again says nothing that a new one would not.
  const forget = (now: number): void => {
    if (buckets.size <= forgetAbove) return;
    for (const [caller, bucket] of buckets) {
      if (filled(bucket, now) >= perMinute) buckets.delete(caller);
    }
  };

  return {
    check(caller) {
      const now = clock.now();
      const bucket = buckets.get(caller);
      // A clock that went back must not keep anybody waiting until it is where it was.
      if (bucket && bucket.at > now) bucket.at = now;
      const tokens = bucket ? filled(bucket, now) : perMinute;
      if (tokens < 1) {
        const retryAfter = Math.ceil((1 - tokens) / perMs / 1000);
        throw new WaymarkError(
          'RESOURCE_EXHAUSTED',
          `More than ${perMinute} requests in a minute. Try again in ${retryAfter} s.`,
          { details: { retryAfter } },
        );
      }
      if (bucket) Object.assign(bucket, { tokens: tokens - 1, at: now });
      else {
        buckets.set(caller, { tokens: tokens - 1, at: now });
        forget(now);
      }
    },
  };
}
