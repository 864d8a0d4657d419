import { expect, test } from 'vitest';
import { fakeClock } from '../testing/fake-clock.ts';
import { createSuspects, type Suspects } from './suspects.ts';

/** How many crashes a suspect may have to be taken now; 0: none is. */
function allowed(suspects: Suspects): number {
  const permit = suspects.permit();
  permit.settle([]);
  return permit.limit === 0 ? 0 : permit.maxCrashes;
}

function take(suspects: Suspects, runId: string, crashes: number): void {
  suspects.permit().settle([{ runId, crashes }]);
}

test('S223: the next suspect waits until the one before makes progress, ends, or has run for 10 seconds', async () => {
  const clock = fakeClock();
  const suspects = createSuspects(clock, 4);
  let freed = 0;
  suspects.onFree(() => freed++);
  expect(allowed(suspects)).toBe(3);
  take(suspects, 'a', 1);
  expect(allowed(suspects)).toBe(0);
  suspects.clear('a');
  expect([allowed(suspects), freed]).toEqual([3, 1]);
  take(suspects, 'b', 2);
  await clock.advance(9_999);
  expect([allowed(suspects), freed]).toEqual([0, 1]);
  await clock.advance(1);
  // One that may be on its last chance waits until no other suspect is about.
  expect([allowed(suspects), freed]).toEqual([2, 2]);
  suspects.clear('b');
  expect(allowed(suspects)).toBe(3);
});

test('S223: a run on its last chance has up to five minutes to itself', async () => {
  const clock = fakeClock();
  const suspects = createSuspects(clock, 3);
  take(suspects, 'last', 2);
  await clock.advance(299_999);
  expect(allowed(suspects)).toBe(0);
  await clock.advance(1);
  expect(allowed(suspects)).toBe(2);
});

test('S223: of two who ask at once one gets a suspect; those to be given up, and fresh ones, need none', () => {
  const suspects = createSuspects(fakeClock(), 3);
  const first = suspects.permit();
  const second = suspects.permit();
  expect([first.limit, second.limit]).toEqual([1, 0]);
  second.settle([]);
  expect(suspects.permit().limit).toBe(0);
  first.settle([
    { runId: 'fresh', crashes: 0 },
    { runId: 'dead', crashes: 3 },
  ]);
  expect(allowed(suspects)).toBe(2);
});
