import { expect, test } from 'vitest';
import type { Clock } from '../../core/time.ts';
import { createRateLimit, createSlots } from './limits.ts';

test('each principal has its share, and gives it back once', () => {
  const slots = createSlots('streams', 2, 3);
  const first = slots.take('ann');
  slots.take('ann');
  expect(() => slots.take('ann')).toThrow(/You have 2 streams open/);
  slots.take('bob');
  expect(() => slots.take('bob')).toThrow(/The server has 3 streams open/);
  first();
  first();
  expect(slots.size).toBe(2);
  slots.take('ann');
  expect(() => slots.take('ann')).toThrow(
    expect.objectContaining({ status: 'RESOURCE_EXHAUSTED' }),
  );
});

test('without a principal only the total counts', () => {
  const slots = createSlots('streams', 1, 5);
  for (let at = 0; at < 5; at++) slots.take(undefined);
  expect(() => slots.take(undefined)).toThrow(/5 streams/);
});

test('a minute’s worth may come at once, then one at a time', () => {
  const clock = stoppedClock();
  const rate = createRateLimit(60, clock);
  for (let at = 0; at < 60; at++) rate.check('ann');
  expect(() => rate.check('ann')).toThrow(
    expect.objectContaining({ status: 'RESOURCE_EXHAUSTED', details: { retryAfter: 1 } }),
  );
  rate.check('bob');
  clock.time += 1000;
  rate.check('ann');
  expect(() => rate.check('ann')).toThrow(/More than 60 requests/);
});

test('a clock that goes backwards neither grants requests nor prolongs a wait', () => {
  const clock = stoppedClock();
  const rate = createRateLimit(1, clock);
  rate.check('ann');
  clock.time -= 3_600_000;
  expect(() => rate.check('ann')).toThrow(/More than 1/);
  clock.time += 60_000;
  rate.check('ann');
});

function stoppedClock(): Clock & { time: number } {
  const clock = {
    time: 1_000_000,
    now: () => clock.time,
    sleep: () => Promise.resolve(),
    every: () => () => {},
  };
  return clock;
}
