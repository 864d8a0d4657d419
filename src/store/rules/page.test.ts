import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkLimit, pageOf, parseCursor } from './page.ts';

test('a cursor comes back as it left', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.string(), (number, text) => {
      const { next } = pageOf([1, 2], () => [number, text], { limit: 1 });
      expect(parseCursor(next)).toEqual([number, text]);
    }),
  );
  expect(parseCursor(undefined)).toBeUndefined();
});

test('what is no cursor of ours is INVALID_ARGUMENT', () => {
  for (const bad of ['', 'x', '[]', '["a","b"]', '[1.5,"a"]', '[1]', '{"0":1}', 'null']) {
    expect(() => parseCursor(bad), bad).toThrow(/Start again without one/);
  }
});

test('a limit is a positive whole number', () => {
  expect(() => checkLimit(1)).not.toThrow();
  for (const bad of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => checkLimit(bad), String(bad)).toThrow(/positive whole number/);
  }
});
