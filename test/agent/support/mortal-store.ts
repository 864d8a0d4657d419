import type { Store } from '../../../src/store/contract/store.ts';

/** One process's way to a store that others use, too: it can be cut, and come back with everything that was on its way. */
export interface MortalStore extends Store {
  /** From now on nothing gets through; calls wait. */
  cut(): void;
  /** What waited goes through now, as that of a process that was only frozen. */
  heal(): Promise<void>;
}

export function mortalStore(store: Store): MortalStore {
  let waiting: (() => Promise<unknown>)[] | undefined;
  const call = (work: () => Promise<unknown>): Promise<unknown> => {
    if (waiting === undefined) return work();
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.push(() => work().then(resolve, reject));
    return promise;
  };
  const wrap = <T extends object>(part: T): T => {
    const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
      if (typeof value === 'object' && value !== null) return [key, wrap(value)];
      if (typeof value !== 'function') return [key, value];
      // A process that is cut off gets no notifications.
      if (/^on[A-Z]/.test(key)) {
        return [
          key,
          (id: string, listener: () => void) =>
            value(id, () => waiting === undefined && listener()),
        ];
      }
      return [key, (...args: unknown[]) => call(() => value(...args))];
    });
    return Object.fromEntries(entries) as T;
  };
  return Object.assign(wrap(store), {
    cut() {
      waiting ??= [];
    },
    async heal() {
      const late = waiting ?? [];
      waiting = undefined;
      await Promise.all(late.map((work) => work()));
    },
  });
}
