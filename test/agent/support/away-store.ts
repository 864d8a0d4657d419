import { WaymarkError } from '../../../src/core/error.ts';
import type { Store } from '../../../src/store/contract/store.ts';

/** One process's way to a store that others use, too: it can break, before or after what was asked has been done. */
export interface AwayStore extends Store {
  /** From now on these calls are UNAVAILABLE: they are not done, or done and their answers lost. */
  goAway(answers: 'not done' | 'lost', calls?: RegExp): void;
  comeBack(): void;
  /** How many calls of this name came while it was away. */
  missed(call: string): number;
}

export function awayStore(store: Store): AwayStore {
  let rules: { readonly answers: 'not done' | 'lost'; readonly calls: RegExp }[] = [];
  const missed: string[] = [];
  const call = async (name: string, work: () => unknown): Promise<unknown> => {
    const away = rules.find(({ calls }) => calls.test(name));
    if (away === undefined) return await work();
    missed.push(name);
    if (away.answers === 'lost') await work();
    throw new WaymarkError('UNAVAILABLE', 'The connection to the store was lost. Try again.');
  };
  const wrap = <T extends object>(part: T, prefix: string): T => {
    const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
      const name = `${prefix}${key}`;
      if (typeof value === 'object' && value !== null) return [key, wrap(value, `${key}.`)];
      if (typeof value !== 'function' || /\.on[A-Z]/.test(name)) return [key, value];
      return [key, (...args: unknown[]) => call(name, () => value(...args))];
    });
    return Object.fromEntries(entries) as T;
  };
  return Object.assign(wrap(store, ''), {
    goAway(answers: 'not done' | 'lost', calls = /./) {
      rules.push({ answers, calls });
    },
    comeBack() {
      rules = [];
    },
    missed: (name: string) => missed.filter((each) => each === name).length,
  });
}
