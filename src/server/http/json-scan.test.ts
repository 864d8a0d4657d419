import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exceededBound, topLevelString } from './body.ts';

const any = Number.POSITIVE_INFINITY;

describe('depth', () => {
  test('brackets inside strings do not count', () => {
    const bounds = { depth: 1, values: any };
    expect(exceededBound('["[[[[", "\\"[[[[", "\\\\"]', bounds)).toBeUndefined();
    expect(exceededBound('["\\\\", [1]]', bounds)).toBe('depth');
  });

  test('agrees with a walk over the parsed value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 0, max: 8 }), (text, depth) => {
        const isDeeper = exceededBound(text, { depth, values: any }) === 'depth';
        expect(isDeeper).toBe(depthOf(JSON.parse(text)) > depth);
      }),
    );
  });

  test('a text that never ends is looked through once', () => {
    const started = performance.now();
    const text = `"${'\\"'.repeat(2_000_000)}`;
    expect(exceededBound(text, { depth: 5, values: any })).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe('values', () => {
  test('commas and brackets inside strings do not count', () => {
    expect(exceededBound('["a,b,[,{"]', { depth: any, values: 2 })).toBeUndefined();
  });

  test('no text has more values than were counted, and the count is at most twice as many', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const values = countOf(JSON.parse(text));
        expect(exceededBound(text, { depth: any, values: values * 2 })).toBeUndefined();
        if (values === 1) return;
        expect(exceededBound(text, { depth: any, values: values - 1 })).toBe('values');
      }),
    );
  });
});

test('numbers and gaps of any length are refused, texts are not', () => {
  const bounds = { depth: any, values: any };
  const long = 100_000;
  for (const text of [
    `[${'1'.repeat(long)}]`,
    `[1,${'1'.repeat(long)},2]`,
    '1'.repeat(long),
    `[${' '.repeat(long)}"a"]`,
    `{"a":${' '.repeat(long)}1}`,
    `{}${' '.repeat(long)}`,
  ]) {
    expect(exceededBound(text, bounds)).toBe('token');
  }
  for (const text of [
    `["${'1'.repeat(long)}"]`,
    `{"${' '.repeat(long)}":1}`,
    `["\\"${','.repeat(long)}"]`,
  ]) {
    expect(exceededBound(text, bounds)).toBeUndefined();
  }
});

describe('the string at a key', () => {
  test('is that of the outermost object only, and the last one', () => {
    const text = '{"a":{"key":"inner"},"b":["key","x"],"key":"one","c":"key","key":"t\\u0077o"}';
    expect(topLevelString(text, 'key')).toBe('two');
    expect(topLevelString('{"a":{"key":"inner"},"b":["key","x"]}', 'key')).toBeUndefined();
    expect(topLevelString('["key","x"]', 'key')).toBeUndefined();
    expect(topLevelString('{"key":{"key":"x"}}', 'key')).toBeUndefined();
    expect(topLevelString('{"\\u006bey":"escaped"}', 'key')).toBe('escaped');
    expect(topLevelString('{"key":"never ends', 'key')).toBeUndefined();
  });

  test('agrees with JSON.parse', () => {
    const name = fc.constantFrom('key', 'other', '"', '\\', 'key,');
    const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(fc.dictionary(name, value), (object) => {
        const wanted = typeof object.key === 'string' ? object.key : undefined;
        expect(topLevelString(JSON.stringify(object), 'key')).toBe(wanted);
      }),
    );
  });
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, item) => sum + countOf(item), 1);
}
