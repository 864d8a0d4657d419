import { after } from '../../core/time/after.ts';
import type { InvocationState } from './invocation-state.ts';

/** How long after a stop the function of a turn may take to come to its end before it is left behind. */
export const turnStopTimeoutMs = 5_000;

/** The same for the handler around it: the turn inside still keeps what there is of its answer. */
export const handlerStopTimeoutMs: number = 2 * turnStopTimeoutMs;

/** Says that work did not come to an end for too long after it was stopped. */
export class StopTimeoutError extends Error {}

/** Waits for work; after a stop only so long, for work that does not look at its signal. */
export function withStopTimeout<Value>(
  { control: { signal }, host: { clock } }: InvocationState,
  work: Promise<Value>,
  ms: number,
): Promise<Value> {
  return new Promise<Value>((resolve, reject) => {
    let cancel: (() => void) | undefined;
    const onAbort = (): void => {
      cancel = after(clock, ms, () => reject(new StopTimeoutError()), { keepAlive: true });
    };
    const end = (): void => {
      signal.removeEventListener('abort', onAbort);
      cancel?.();
    };
    // Watched also when it is left behind, so that its rejection is never unhandled.
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
