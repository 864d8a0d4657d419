import { expect, test } from 'vitest';
import { systemClock } from '../../core/time.ts';
import { createChangeWatch } from './change-watch.ts';

/** A watch over numbers that the test changes, with looks that happen when the test says so. */
function createWatch() {
  const marks = new Map<string, string>();
  let version = 0;
  const looks = new Set<() => void>();
  const clock = {
    ...systemClock,
    every(_ms: number, look: () => void) {
      looks.add(look);
      return () => looks.delete(look);
    },
  };
  const watch = createChangeWatch(clock, {
    version: () => version,
    mark: ({ id }) => marks.get(id),
  });
  return {
    watch,
    isLooking: () => looks.size > 0,
    /** Another process commits and changes these. */
    commit(changes: Readonly<Record<string, string>> = {}) {
      version++;
      for (const [id, mark] of Object.entries(changes)) marks.set(id, mark);
    },
    async look() {
      for (const each of [...looks]) each();
      await Promise.resolve();
    },
  };
}

function listener(): { readonly hear: () => void; count(): number } {
  let heard = 0;
  return {
    hear: () => {
      heard++;
    },
    count: () => heard,
  };
}

test('a foreign commit notifies the subscribers whose run it changed', async () => {
  const { watch, commit, look } = createWatch();
  const [a, b] = [listener(), listener()];
  watch.listen({ kind: 'run', id: 'a' }, a.hear);
  watch.listen({ kind: 'run', id: 'b' }, b.hear);
  await look();
  expect([a.count(), b.count()]).toEqual([0, 0]);
  // The first time there is nothing to compare with.
  commit({ a: '1', b: '1' });
  await look();
  expect([a.count(), b.count()]).toEqual([1, 1]);
  commit({ a: '2' });
  await look();
  await look();
  expect([a.count(), b.count()]).toEqual([2, 1]);
  commit();
  await look();
  expect([a.count(), b.count()]).toEqual([2, 1]);
});

test('what cannot be looked at may have changed', async () => {
  const { watch, commit, look } = createWatch();
  const heard = listener();
  watch.listen({ kind: 'run', id: 'nothing known' }, heard.hear);
  commit();
  await look();
  commit();
  await look();
  expect(heard.count()).toBe(2);
});

test('polling continues between two subscribers and ends without one', async () => {
  const { watch, commit, look, isLooking } = createWatch();
  const [first, second] = [listener(), listener()];
  watch.listen({ kind: 'run', id: 'a' }, first.hear)();
  expect(isLooking()).toBe(true);
  const leave = watch.listen({ kind: 'run', id: 'a' }, second.hear);
  commit({ a: '1' });
  await look();
  expect([first.count(), second.count()]).toEqual([0, 1]);
  leave();
  await look();
  expect(isLooking()).toBe(false);
});
