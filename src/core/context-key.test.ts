import { expect, test } from 'vitest';
import { createContextKey } from './platform.ts';

test('a value is seen through awaits, timers and nested calls, and nowhere else', async () => {
  const key = createContextKey<string>('user');
  const read = async (): Promise<string | undefined> => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return key.get();
  };
  const [a, b] = await Promise.all([
    key.run('a', read),
    key.run('b', () => Promise.resolve().then(read)),
  ]);
  expect([a, b, key.get()]).toEqual(['a', 'b', undefined]);
});

test('keys do not see each other, the innermost run of a key counts, and undefined is a value', () => {
  const one = createContextKey<number | undefined>('x');
  const two = createContextKey<number>('x');
  one.run(1, () =>
    two.run(2, () => {
      expect([one.get(), two.get()]).toEqual([1, 2]);
      one.run(undefined, () => expect([one.get(), two.get()]).toEqual([undefined, 2]));
      expect(one.get()).toBe(1);
    }),
  );
});

test('what is thrown inside comes out, and the value is gone', () => {
  const key = createContextKey<number>('x');
  expect(() =>
    key.run(1, () => {
      throw new Error('inside');
    }),
  ).toThrow('inside');
  expect(key.get()).toBeUndefined();
});
