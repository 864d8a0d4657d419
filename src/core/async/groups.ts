import { afterThisTurn, callEach, isPerRequest } from '../platform.ts';

/**
 * Does things in groups. Calls of one turn of the microtask queue are one group, and calls that come while a group is on its
 * way make the next one: a single call does not wait, and the more there is to do, the larger the groups are. `work` gives a
 * result for each item, in their order; an `Error` among the results is thrown to its caller alone.
 */
export function inGroups<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>,
  most: number,
): (item: Item) => Promise<Result> {
  let waiting: { readonly item: Item; readonly result: PromiseWithResolvers<Result> }[] = [];
  let isWorking = false;

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const group = waiting.slice(0, most);
      waiting = waiting.slice(most);
      try {
        const results = await work(group.map(({ item }) => item));
        for (const [n, { result }] of group.entries()) settle(result, results[n]);
      } catch (error) {
        for (const { result } of group) result.reject(error);
      }
    }
    isWorking = false;
  };

  return (item) => {
    const result = Promise.withResolvers<Result>();
    waiting.push({ item, result });
    if (!isWorking) {
      isWorking = true;
      queueMicrotask(() => void run());
    }
    return result.promise;
  };
}

function settle<Result>(
  { resolve, reject }: PromiseWithResolvers<Result>,
  result: Result | Error | undefined,
): void {
  if (result instanceof Error) reject(result);
  else resolve(result as Result);
}

/** Milliseconds after which another call ends the wait. */
const maxWait = 0.25;

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
  } else if (performance.now() - since > maxWait) callAll();
}

function callAll(): void {
  const calls = waiting;
  waiting = [];
  callEach(calls);
}
