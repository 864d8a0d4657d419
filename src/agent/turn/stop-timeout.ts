import { after } from '../../core/time/timers.ts';
import type { InvocationState } from './invocation-state.ts';

/** How long a turn function may take to return after a stop, before the turn ends without it. */
export const turnStopTimeoutMs = 5_000;

/** The same for the handler, which is longer so that the turn inside it can still save its partial answer. */
export const handlerStopTimeoutMs: number = 2 * turnStopTimeoutMs;

/** Work did not end in time after it was stopped. */
export class StopTimeoutError extends Error {}

/** Waits for work, and after a stop only for this long: user code may ignore its signal. */
export function withStopTimeout<Value>(
  { control, host: { clock } }: InvocationState,
  work: Promise<Value>,
  ms: number,
): Promise<Value> {
  return new Promise<Value>((resolve, reject) => {
    let cancel: (() => void) | undefined;
    const onStop = (): void => {
      cancel = after(clock, ms, () => reject(new StopTimeoutError()), { keepAlive: true });
    };
    const unlisten = control.onStop(onStop);
    const end = (): void => {
      unlisten();
      cancel?.();
    };
    // Also handles a rejection after the timeout.
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
    if (control.cause !== undefined) onStop();
  });
}
