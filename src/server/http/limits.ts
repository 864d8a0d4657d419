import { invalid, WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import type { Clock } from '../../core/time.ts';

/** How much one request, one principal and the whole server may take. */
export interface ServerLimits {
  /** Bytes of a request body, or of a WebSocket frame. @default 8 MiB */
  readonly bodyBytes: number;
  /** Maximum nesting depth of the JSON of a body. @default 128 */
  readonly jsonDepth: number;
  /**
   * Values in the JSON of a body or frame: array items, properties, arrays and objects. Parsing and checking a body takes
   * time and memory in proportion to it. @default 30000
   */
  readonly jsonValues: number;
  /** Characters of a request's URL. @default 8192 */
  readonly urlLength: number;
  /** Bytes of all headers of a request; `serve` only. @default 16 KiB */
  readonly headerBytes: number;
  /** Milliseconds within which a request, including its body, must arrive. @default 30 s */
  readonly requestTimeout: number;
  /** Concurrent connections on which no request has been accepted yet; `serve` only. @default 1000 */
  readonly unauthenticated: number;
  /** The same for one address, or for one IPv6 /64 network, a second after they were opened. @default 100 */
  readonly unauthenticatedPerAddress: number;
  /** Milliseconds within which a WebSocket must send its first frame and be authenticated. @default 5 s */
  readonly authTimeout: number;
  /** Failed authentications from one address per minute; after that, the address is rejected for a while. @default 60 */
  readonly failedAuthPerMinute: number;
  /** Open streams and WebSockets of all clients. @default 10000 */
  readonly streams: number;
  /** Open streams and WebSockets of one principal. @default 100 */
  readonly streamsPerPrincipal: number;
  /** Concurrent turns of one principal. @default 20 */
  readonly turnsPerPrincipal: number;
  /** Background runs of one principal that have not ended, in all processes. @default 100 */
  readonly backgroundRunsPerPrincipal: number;
  /** Requests per minute of one principal; unlimited by default. */
  readonly requestsPerMinute?: number;
  /** Milliseconds that a client may leave a full stream unread before it is disconnected. @default 30 s */
  readonly stallTimeout: number;
}

const defaults: ServerLimits = {
  bodyBytes: 8 * 1024 * 1024,
  jsonDepth: 128,
  jsonValues: 30_000,
  urlLength: 8192,
  headerBytes: 16 * 1024,
  requestTimeout: 30_000,
  unauthenticated: 1000,
  unauthenticatedPerAddress: 100,
  authTimeout: 5_000,
  failedAuthPerMinute: 60,
  streams: 10_000,
  streamsPerPrincipal: 100,
  turnsPerPrincipal: 20,
  backgroundRunsPerPrincipal: 100,
  stallTimeout: 30_000,
};

const limitNames = Object.fromEntries(Object.keys(defaults).map((name) => [name, true as const]));

/** The given limits over the defaults; one that is not a positive number is refused. */
export function resolveLimits(given: Partial<ServerLimits> = {}): ServerLimits {
  checkOptions(given, { ...limitNames, requestsPerMinute: true }, '`limits`');
  const limits: ServerLimits = { ...defaults, ...given };
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value === 'number' && value > 0) continue;
    throw invalid(`limits.${name} must be a positive number, not ${String(value)}.`);
  }
  return limits;
}

/** Counts what is open, for everybody and per principal, and refuses what would be too much. */
export interface Slots {
  /** Takes a slot, or is `RESOURCE_EXHAUSTED`; the returned function gives it back, once. */
  take(principal: string | undefined): () => void;
  /** How many are taken. */
  readonly size: number;
}

/** New slots; without a principal only the total counts, as there are no users to share between. */
export function createSlots(
  what: string,
  perPrincipal: number,
  total = Number.POSITIVE_INFINITY,
): Slots {
  const taken = new Map<string, number>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    take(principal) {
      const mine = principal === undefined ? 0 : (taken.get(principal) ?? 0);
      if (size >= total) throw exhausted(`The server has ${total} ${what} open`);
      if (mine >= perPrincipal) throw exhausted(`You have ${perPrincipal} ${what} open`);
      size++;
      if (principal !== undefined) taken.set(principal, mine + 1);
      let given = false;
      return () => {
        if (given) return;
        given = true;
        size--;
        if (principal === undefined) return;
        const left = (taken.get(principal) ?? 1) - 1;
        if (left > 0) taken.set(principal, left);
        else taken.delete(principal);
      };
    },
  };
}

function exhausted(what: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `${what}, which is the limit. Try again when one has ended.`,
    { details: { retryAfter: 1 } },
  );
}

interface RateLimit {
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

  return {
    check(caller) {
      this.look(caller);
      this.spend(caller);
    },
    look(caller) {
      const tokens = left(caller, clock.now());
      if (tokens >= 1) return;
      const retryAfter = Math.ceil((1 - tokens) / perMs / 1000);
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `More than ${perMinute} ${what} in a minute. Try again in ${retryAfter} s.`,
        { details: { retryAfter } },
      );
    },
    spend(caller) {
      const now = clock.now();
      const tokens = left(caller, now);
      if (tokens < 1) return;
      buckets.set(caller, { tokens: tokens - 1, at: now });
      forget(now);
    },
  };
}
