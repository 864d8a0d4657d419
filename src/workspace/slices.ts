import { throwIfAborted } from '../core/async/signal.ts';
import { letOthersRun } from '../core/platform.ts';

/** Work in steps, which yields when others should run. */
export type Steps<Result> = Generator<void, Result>;

const sliceMs = 4;
let sliceEnd = 0;

/** Whether the current slice of work is over. Then yield. */
export function isDue(): boolean {
  return performance.now() >= sliceEnd;
}

/** Does work in slices of a few milliseconds, between which the event loop serves others. */
export async function inSlices<Result>(
  steps: Steps<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (;;) {
    throwIfAborted(signal);
    sliceEnd = performance.now() + sliceMs;
    const { done, value } = steps.next();
    if (done === true) return value;
    await letOthersRun();
  }
}
