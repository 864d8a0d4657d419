import type { Clock } from './clock.ts';

/**
 * Calls a function once, after some time. Returns a function that cancels the call.
 *
 * @example
 * const cancel = after(clock, 5_000, () => socket.terminate());
 * socket.once('close', cancel);
 */
export function after(
  clock: Clock,
  ms: number,
  fn: () => void,
  {
    keepAlive = false,
  }: {
    /** Whether the timer keeps the process alive, for work that a caller awaits. @default false */
    readonly keepAlive?: boolean;
  } = {},
): () => void {
  if (keepAlive) {
    const cancelled = new AbortController();
    clock.sleep(ms, cancelled.signal).then(fn, () => {});
    return () => cancelled.abort();
  }
  const stop = clock.every(ms, () => {
    stop();
    fn();
  });
  return stop;
}
