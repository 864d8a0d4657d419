import { expect, test } from 'vitest';
import { Mutex } from './promises.ts';

test('work runs one at a time, in the order in which it came', async () => {
  const gate = new Mutex();
  const seen: string[] = [];
  const work = (name: string) => async (): Promise<string> => {
    seen.push(`${name} begins`);
    await Promise.resolve();
    seen.push(`${name} ends`);
    return name;
  };
  const first = gate.run(work('a'));
  const second = gate.run(work('b'));
  // Comes in the very moment in which the first hands over to the second.
  const third = first.then(() => gate.run(work('c')));
  expect(await Promise.all([first, second, third])).toEqual(['a', 'b', 'c']);
  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('failed work releases the lock, and only its own caller gets the error', async () => {
  const gate = new Mutex();
  const failing = gate.run(() => Promise.reject(new Error('broken')));
  const next = gate.run(async () => 'continued');
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('continued');
  expect(await gate.run(async () => 'free again')).toBe('free again');
});

test('work begins at once where nothing runs', () => {
  let begun = false;
  void new Mutex().run(async () => {
    begun = true;
  });
  expect(begun).toBe(true);
});
