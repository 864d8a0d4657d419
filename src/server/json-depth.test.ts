import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isNestedDeeperThan } from './json-depth.ts';

test('brackets inside strings do not count', () => {
  expect(isNestedDeeperThan('["[[[[", "\\"[[[[", "\\\\"]', 1)).toBe(false);
  expect(isNestedDeeperThan('["\\\\", [1]]', 1)).toBe(true);
});

test('agrees with a walk over the parsed value', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 0, max: 8 }), (text, most) => {
      expect(isNestedDeeperThan(text, most)).toBe(depthOf(JSON.parse(text)) > most);
    }),
  );
});

test('a text that never ends is looked through once', () => {
  const started = performance.now();
  expect(isNestedDeeperThan(`"${'\\"'.repeat(2_000_000)}`, 5)).toBe(false);
  expect(performance.now() - started).toBeLessThan(2000);
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
