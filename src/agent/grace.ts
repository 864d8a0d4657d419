import type { Invocation } from './invocation.ts';

/** How long after a stop the function of a turn may take to come to its end before it is left behind. */
export const turnGraceMs = 5_000;

/** The same for the handler around it: the turn inside still keeps what there is of its answer. */
export const handlerGraceMs: number = 2 * turnGraceMs;

/** Says that work did not come to an end for too long after it was stopped. */
export class LeftBehind extends Error {}

/** Waits for work; after a stop only so long, for work that does not look at its signal. */
export async function withGrace<Value>(
  { control: { signal }, host: { clock } }: Invocation,
  work: Promise<Value>,
  ms: number,
): Promise<Value> {
  const left = Promise.withResolvers<never>();
  // Made only when it is stopped: a signal for each turn that is not would cost more than saving the turn does.
  let over: AbortController | undefined;
  const onAbort = (): void => {
    over = new AbortController();
    clock.sleep(ms, over.signal).then(
      () => left.reject(new LeftBehind()),
      () => {},
    );
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, left.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    over?.abort();
  }
}
