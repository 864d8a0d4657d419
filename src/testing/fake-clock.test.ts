import { expect, test } from 'vitest';
import { timeoutSignal } from '../core/time.ts';
import { fakeClock } from './fake-clock.ts';

test('time stands still until it is moved', async () => {
  const clock = fakeClock('2026-01-01T00:00:00Z');
  const start = Date.UTC(2026, 0, 1);
  expect(clock.now()).toBe(start);
  await clock.advance(1500);
  expect(clock.now()).toBe(start + 1500);
});

test('sleepers wake in the order of their times, and see the time they asked for', async () => {
  const clock = fakeClock();
  const woken: [string, number][] = [];
  const sleep = async (name: string, ms: number): Promise<void> => {
    await clock.sleep(ms);
    woken.push([name, clock.now()]);
  };
  const all = [sleep('late', 30), sleep('early', 10), sleep('also early', 10)];
  await clock.advance(9);
  expect(woken).toEqual([]);
  await clock.advance(100);
  await Promise.all(all);
  expect(woken).toEqual([
    ['early', 10],
    ['also early', 10],
    ['late', 30],
  ]);
});

test('one that sleeps again while time moves wakes within the same move', async () => {
  const clock = fakeClock();
  let rounds = 0;
  const loop = (async () => {
    while (rounds < 3) {
      await clock.sleep(10);
      rounds++;
    }
  })();
  await clock.advance(30);
  await loop;
  expect(clock.now()).toBe(30);
});

test('a signal ends a sleep, and leaves nothing behind', async () => {
  const clock = fakeClock();
  const controller = new AbortController();
  const sleep = clock.sleep(10, controller.signal);
  controller.abort();
  await expect(sleep).rejects.toMatchObject({ status: 'CANCELLED' });
  await expect(clock.sleep(10, controller.signal)).rejects.toMatchObject({ status: 'CANCELLED' });
  expect(clock.waiting).toBe(0);
});

test('an interval goes off again and again until it is ended', async () => {
  const clock = fakeClock();
  let times = 0;
  const end = clock.every(10, () => {
    times++;
  });
  await clock.advance(35);
  expect(times).toBe(3);
  end();
  await clock.advance(35);
  expect(times).toBe(3);
});

test('deadlines follow it', async () => {
  const clock = fakeClock();
  const { signal } = timeoutSignal(clock, 100);
  await clock.advance(99);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.reason).toMatchObject({ status: 'DEADLINE_EXCEEDED' });
});

test('what is no time is refused', () => {
  expect(() => fakeClock('yesterday')).toThrow(/Not a time/);
});
