import { expect, test } from 'vitest';
import type { RunSupport, SuspectLimit, TakenRun } from '../store/contract/store.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { Suspects } from './suspects.ts';

const request = { agents: [], worker: 'w', ttl: 1, limit: 9 };
const never = () => new Promise<readonly TakenRun[]>(() => {});

/** Takes over what a store gives; returns the limit that the store was asked with. */
function ask(suspects: Suspects, give: RunSupport['takeOver']): SuspectLimit | undefined {
  let limit: SuspectLimit | undefined;
  const takeOver: RunSupport['takeOver'] = (given) => {
    limit = given.suspects;
    return give(given);
  };
  void suspects.take({ takeOver }, request);
  return limit;
}

/** How many crashes a suspect may have to be taken now; 0: none is. */
async function allowed(suspects: Suspects): Promise<number> {
  const { limit, maxCrashes } = ask(suspects, async () => []) ?? { limit: 0, maxCrashes: 0 };
  await settled();
  return limit === 0 ? 0 : maxCrashes;
}

/** Takes over these runs, which have lost so many workers. */
async function take(suspects: Suspects, lost: Readonly<Record<string, number>>): Promise<void> {
  const taken = Object.entries(lost).map(([runId, count]) => {
    const crashes = Array.from({ length: count }, (_, at) => ({ attempt: at, lastSeenAt: '' }));
    // Nothing else of it is looked at.
    return { run: { runId, crashes } } as unknown as TakenRun;
  });
  ask(suspects, async () => taken);
  await settled();
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('S223: the next suspect waits until the one before makes progress, ends, or has run for 10 seconds', async () => {
  const clock = fakeClock();
  const suspects = new Suspects(clock, 4);
  let freed = 0;
  suspects.onFree(() => freed++);
  expect(await allowed(suspects)).toBe(3);
  await take(suspects, { a: 1 });
  expect(await allowed(suspects)).toBe(0);
  suspects.clear('a');
  expect([await allowed(suspects), freed]).toEqual([3, 1]);
  await take(suspects, { b: 2 });
  await clock.advance(9_999);
  expect([await allowed(suspects), freed]).toEqual([0, 1]);
  await clock.advance(1);
  // One that may be on its last chance waits until no other suspect is about.
  expect([await allowed(suspects), freed]).toEqual([2, 2]);
  suspects.clear('b');
  expect(await allowed(suspects)).toBe(3);
});

test('S223: a run on its last chance has up to five minutes to itself', async () => {
  const clock = fakeClock();
  const suspects = new Suspects(clock, 3);
  await take(suspects, { last: 2 });
  await clock.advance(299_999);
  expect(await allowed(suspects)).toBe(0);
  await clock.advance(1);
  expect(await allowed(suspects)).toBe(2);
});

test('S223: of two who ask at once one gets a suspect; those to be given up, and fresh ones, need none', async () => {
  const suspects = new Suspects(fakeClock(), 3);
  const first = Promise.withResolvers<readonly TakenRun[]>();
  expect(ask(suspects, () => first.promise)?.limit).toBe(1);
  expect(ask(suspects, async () => [])?.limit).toBe(0);
  await settled();
  expect(ask(suspects, never)?.limit).toBe(0);
  first.resolve([]);
  await settled();
  await take(suspects, { fresh: 0, dead: 3 });
  expect(await allowed(suspects)).toBe(2);
});

test('S223: a store that fails to answer leaves the next suspect to others', async () => {
  const suspects = new Suspects(fakeClock(), 3);
  const takeOver = async () => {
    throw new Error('away');
  };
  await expect(suspects.take({ takeOver }, request)).rejects.toThrow('away');
  expect(await allowed(suspects)).toBe(2);
});
