import { afterThisTurn, callEach, isPerRequest } from '../platform.ts';

/** Milliseconds after which a call makes those before it. */
const longestWait = 0.25;

let waiting: (() => void)[] = [];
let since = 0;

/**
 * Calls a function together with others of this turn of the event loop: after the turn, or before its end when another one is
 * added a quarter of a millisecond after the first. Sending for many streams at once is cheaper, but a turn in which
 * hundreds of them have something to send takes long.
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
