import { afterThisTurn, callEach, isPerRequest } from '../platform.ts';

/** Milliseconds for which the first of some calls waits for others. */
const longestWait = 0.25;

let waiting: (() => void)[] = [];
let since = 0;

/**
 * Calls a function together with others of this turn of the event loop: after it, or within it when the first has waited for a
 * quarter of a millisecond. What many streams send at once is cheaper together, but a turn in which hundreds have something
 * to send takes long.
 */
export function gather(fn: () => void): void {
  if (isPerRequest) afterThisTurn(fn);
  else if (waiting.push(fn) === 1) {
    since = performance.now();
    afterThisTurn(callAll);
  } else if (performance.now() - since > longestWait) callAll();
}

function callAll(): void {
  const calls = waiting;
  waiting = [];
  callEach(calls);
}
