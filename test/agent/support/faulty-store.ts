import type { Store } from '../../../src/store/contract/store.ts';

/** A store that fails at one call, and says what it was asked. */
export interface FaultyStore extends Store {
  /** The names of the calls so far. */
  readonly calls: string[];
  /** Fails at the n-th call of this name from now on (1-based), before or after it has had its effect. */
  failAt(call: string, nth: number, when: 'before' | 'after'): void;
  /** Whether it has failed. */
  readonly failed: boolean;
}

/** Wraps a store so that it can fail at any of its calls. */
export function faultyStore(store: Store): FaultyStore {
  const calls: string[] = [];
  let plan: { call: string; left: number; when: 'before' | 'after' } | undefined;
  let failed = false;
  const wrap = <T extends object>(part: T, prefix: string): T => {
    const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
      const name = `${prefix}${key}`;
      if (typeof value === 'object' && value !== null) return [key, wrap(value, `${key}.`)];
      if (typeof value !== 'function' || /\.on[A-Z]/.test(name)) return [key, value];
      return [key, (...args: unknown[]) => call(name, () => value(...args))];
    });
    return Object.fromEntries(entries) as T;
  };
  const call = async (name: string, work: () => unknown): Promise<unknown> => {
    calls.push(name);
    const fails = plan?.call === name && --plan.left === 0 ? plan.when : undefined;
    if (fails === undefined) return await work();
    failed = true;
    if (fails === 'after') await work();
    throw new Error(`disk full: password=hunter2 in ${name}`);
  };
  return Object.assign(wrap(store, ''), {
    calls,
    failAt(name: string, nth: number, when: 'before' | 'after') {
      plan = { call: name, left: nth, when };
      failed = false;
    },
    get failed() {
      return failed;
    },
  });
}
