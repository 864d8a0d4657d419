import { expect, test } from 'vitest';
import { createSlots } from './limits.ts';

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
