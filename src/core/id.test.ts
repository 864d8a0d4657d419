import { expect, test } from 'vitest';
import { createIds, uuidv7 } from './id.ts';
import { systemClock } from './time.ts';

const form = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

test('an id is a UUID of version 7 with the time in it', () => {
  const now = Date.UTC(2300, 5, 1, 12);
  const id = uuidv7(now, (bytes) => bytes.fill(0xff));
  expect(id).toMatch(form);
  expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(now);
  expect(id.slice(15)).toBe('7ff-bfff-ffffffffffff');
});

test('ids are unique and ascend, also when time stands still or goes back', () => {
  let now = 1_800_000_000_000;
  let calls = 0;
  const newId = createIds({ ...systemClock, now: () => (++calls % 100 === 0 ? --now : now) });
  const ids = Array.from({ length: 20_000 }, newId);
  expect(ids.every((id) => form.test(id))).toBe(true);
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(ids.length);
});

test('ids of the shared source ascend', () => {
  const ids = Array.from({ length: 5000 }, () => uuidv7(Date.now()));
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(ids.length);
});

test('ids come back to the clock after a burst', () => {
  let now = 1_800_000_000_000;
  const newId = createIds({ ...systemClock, now: () => now });
  for (let count = 0; count < 10_000; count++) newId();
  now += 1000;
  expect(Number.parseInt(newId().replace('-', '').slice(0, 12), 16)).toBe(now);
});

test('the same random bytes and times give the same ids', () => {
  const make = (): string[] => {
    let seed = 7;
    const newId = createIds({ ...systemClock, now: () => 1_800_000_000_000 }, (bytes) =>
      bytes.map(() => (seed = (seed * 31) % 251)),
    );
    return Array.from({ length: 3 }, newId);
  };
  expect(make()).toEqual(make());
});
