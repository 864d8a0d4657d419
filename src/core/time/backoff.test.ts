import { expect, test } from 'vitest';
import { backoff, randomFraction } from './backoff.ts';

test('doubles with each attempt up to the limit', () => {
  const delays = [1, 2, 3, 4, 60].map((attempt) => backoff(attempt, { baseMs: 100, maxMs: 500 }));
  expect(delays).toEqual([100, 200, 400, 500, 500]);
});

test('jitter takes away up to half', () => {
  const options = { baseMs: 100, maxMs: 1000 };
  expect(backoff(1, { ...options, jitter: () => 0 })).toBe(50);
  expect(backoff(1, { ...options, jitter: () => 1 })).toBe(100);
  for (let n = 0; n < 100; n++) {
    const delay = backoff(2, { ...options, jitter: randomFraction });
    expect(delay).toBeGreaterThanOrEqual(100);
    expect(delay).toBeLessThanOrEqual(200);
  }
});
