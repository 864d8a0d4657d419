import { randomBytes } from '../platform.ts';

/** How delays between attempts grow. */
export interface BackoffOptions {
  /** Milliseconds before the second attempt. */
  readonly baseMs: number;
  /** The longest delay in milliseconds. */
  readonly maxMs: number;
  /** Returns a number from 0 to 1 that shortens the delay by up to half, so that many clients do not retry together. */
  readonly jitter?: (() => number) | undefined;
}

/** Milliseconds to wait after a failed attempt, counted from 1: doubles with each attempt up to the limit. */
export function backoff(attempt: number, { baseMs, maxMs, jitter }: BackoffOptions): number {
  const delay = Math.min(baseMs * 2 ** (attempt - 1), maxMs);
  return jitter === undefined ? delay : delay * (0.5 + jitter() / 2);
}

/** A random number from 0 to 1, fine enough for {@link BackoffOptions.jitter}. */
export function randomFraction(): number {
  const [byte = 0] = randomBytes(new Uint8Array(1));
  return byte / 255;
}
