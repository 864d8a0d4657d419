import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyJson } from '../../../test/support/any-json.ts';
import { WaymarkError } from '../error.ts';
import {
  canonicalJson,
  deepFreeze,
  isDeepFrozen,
  type Json,
  jsonEqual,
  parseJson,
  toJson,
} from './json.ts';

const anotherRealm = process.getBuiltinModule('node:vm').runInNewContext;
const plainCopy = (value: Json): Json => JSON.parse(JSON.stringify(value));

function expectFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  expect(isDeepFrozen(value)).toBe(true);
  for (const child of Object.values(value)) expectFrozen(child);
}

describe('toJson', () => {
  test('gives an equal, deeply frozen copy that shares nothing with what it was given', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const given = plainCopy(value);
        const result = toJson(given, 'it');
        expect(JSON.stringify(result)).toBe(JSON.stringify(given));
        expectFrozen(result);
        if (typeof given === 'object' && given !== null) {
          expect(result).not.toBe(given);
          expect(Object.isFrozen(given)).toBe(false);
        }
      }),
    );
  });

  test('takes what it froze before as it is, also inside something new', () => {
    const inner = toJson({ deep: [{ x: 1 }] }, 'it');
    expect(toJson(inner, 'it')).toBe(inner);
    const outer = toJson({ inner, list: [inner.deep] }, 'it');
    expect(outer.inner).toBe(inner);
    expect(outer.list[0]).toBe(inner.deep);
  });

  test('does not trust objects frozen by other code', () => {
    const inside = { n: 1 };
    const result = toJson(Object.freeze({ inside }), 'it');
    inside.n = 2;
    expect(result).toStrictEqual({ inside: { n: 1 } });
  });

  test('a copy of a frozen value is not taken for one', () => {
    const value = toJson({ a: [1], b: { c: 2 } }, 'it');
    expect(isDeepFrozen({ ...value })).toBe(false);
    expect(isDeepFrozen(Object.assign({}, value))).toBe(false);
    expect(isDeepFrozen([...value.a])).toBe(false);
    expect(isDeepFrozen(structuredClone(value))).toBe(false);
  });

  test('leaves out what JSON.stringify leaves out of objects', () => {
    const value = { a: undefined, b: 1, [Symbol('s')]: 2 };
    const result = toJson(value, 'it');
    expect(Reflect.ownKeys(result as object)).toEqual(['b']);
  });

  test('keeps a property called __proto__ as data, in small and in wide objects', () => {
    const wide = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n]));
    for (const base of [{}, wide]) {
      const given = JSON.parse(
        `{"__proto__":{"polluted":true},${JSON.stringify({ ...base, z: 1 }).slice(1)}`,
      );
      const result = toJson(given, 'it') as Record<string, Json>;
      expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
      expect(Object.hasOwn(result, '__proto__')).toBe(true);
      expect(result.polluted).toBeUndefined();
      expect(JSON.stringify(result)).toBe(JSON.stringify(given));
    }
  });

  test('takes plain objects of another realm and objects without a prototype', () => {
    expect(toJson(anotherRealm('({ a: [1, { b: 2 }] })'), 'it')).toStrictEqual({
      a: [1, { b: 2 }],
    });
    expect(toJson(Object.assign(Object.create(null), { a: 1 }), 'it')).toStrictEqual({ a: 1 });
  });

  test('writes -0 as 0, as texts of JSON do', () => {
    const result = toJson({ n: -0, list: [-0] }, 'it') as { n: number; list: number[] };
    expect(Object.is(result.n, 0) && Object.is(result.list[0], 0)).toBe(true);
  });

  test('calls a getter once and keeps what it gave', () => {
    let calls = 0;
    const given = {
      get n() {
        return ++calls;
      },
    };
    expect(toJson(given, 'it')).toStrictEqual({ n: 1 });
    expect(calls).toBe(1);
  });

  class Point {
    x = 1;
  }
  const circular: Record<string, unknown> = { a: {} };
  circular.a = { back: circular };
  test.each([
    ['a function', { f() {} }, '/f', 'a function'],
    ['a symbol', [Symbol('s')], '/0', 'a symbol'],
    ['a bigint', { a: [1n] }, '/a/0', 'a bigint'],
    ['NaN', { a: Number.NaN }, '/a', 'NaN'],
    ['Infinity', [[Number.POSITIVE_INFINITY]], '/0/0', 'Infinity'],
    ['a Map', { 'a/b': new Map() }, '/a~1b', 'an instance of Map'],
    ['a Date', new Date(0), '', 'an instance of Date'],
    ['a class instance', [{ point: new Point() }], '/0/point', 'an instance of Point'],
    ['a boxed value', { n: Object(1) }, '/n', 'an instance of Number'],
    ['undefined in an array', { a: [1, undefined] }, '/a/1', 'undefined'],
    ['a hole in an array', { a: new Array(2) }, '/a/0', 'undefined'],
    ['undefined', undefined, '', 'undefined'],
    ['a circle', circular, '/a/back', 'refers back to the whole'],
  ])('refuses %s and says where', (_, value, path, reason) => {
    const error = refusal(() => toJson(value, 'The thing'));
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(error.message).toContain(
      path === '' ? 'The thing is not JSON' : `The thing at ${path} is not JSON`,
    );
    expect(error.message).toContain(reason);
    expect(error.details).toEqual({ path });
    expect(() => canonicalJson(value)).toThrow(reason);
  });

  test('refuses what is nested too deeply instead of overflowing the stack', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 512; level++) deep = level % 2 ? [deep] : { a: deep };
    expect(toJson(deep, 'it')).toStrictEqual(deep);
    for (let level = 0; level < 100_000; level++) deep = [deep];
    expect(refusal(() => toJson(deep, 'it')).message).toContain('more than 512 levels');
    expect(
      refusal(() => parseJson('['.repeat(50_000) + ']'.repeat(50_000), 'it')).message,
    ).toContain('512 levels');
  });
});

describe('deepFreeze', () => {
  test('freezes in place', () => {
    const value: Record<string, unknown> = { a: [{ b: 1 }], gone: undefined };
    expect(deepFreeze(value)).toBe(value);
    expectFrozen(value);
    expect(Object.keys(value)).toEqual(['a']);
    expect(toJson(value, 'it')).toBe(value);
  });

  test('checks what it freezes', () => {
    expect(refusal(() => deepFreeze({ a: new Date() })).message).toContain('/a');
  });

  test('accepts objects frozen by other code', () => {
    const value = { a: Object.freeze({ b: Object.freeze([1]) }) };
    deepFreeze(value);
    expect(isDeepFrozen(value)).toBe(true);
    expect(toJson({ value }, 'it')).toStrictEqual({ value });
  });
});

describe('parseJson', () => {
  test('reads what JSON.stringify wrote', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const result = parseJson(JSON.stringify(value), 'it');
        expect(JSON.stringify(result)).toBe(JSON.stringify(value));
        expectFrozen(result);
      }),
    );
  });

  test.each(['', '{', '{"a":1,}', 'undefined', "{'a':1}"])(
    'refuses %j without repeating it',
    (text) => {
      expect(refusal(() => parseJson(text, 'The body'))).toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: 'The body is not valid JSON.',
      });
    },
  );

  test('refuses numbers that are too large to be one', () => {
    expect(refusal(() => parseJson('{"a":1e999}', 'The body')).message).toContain('/a');
  });
});

describe('canonicalJson', () => {
  test('does not depend on the order in which properties were set', () => {
    fc.assert(
      fc.property(anyJson(), fc.nat(), (value, seed) => {
        expect(canonicalJson(shuffled(value, seed))).toBe(canonicalJson(value));
      }),
    );
  });

  test('reads back as the same value, and is the same text then', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const text = canonicalJson(value);
        expect(jsonEqual(JSON.parse(text), value)).toBe(true);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('is equal exactly for equal values', () => {
    fc.assert(
      fc.property(anyJson(), anyJson(), (a, b) => {
        expect(canonicalJson(a) === canonicalJson(b)).toBe(jsonEqual(a, b));
      }),
    );
  });

  test('writes the examples of RFC 8785', () => {
    const value = JSON.parse(
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
        '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    );
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const keys =
      '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}';
    expect(Object.values(JSON.parse(canonicalJson(JSON.parse(keys))))).toHaveLength(7);
    expect(canonicalJson(JSON.parse(keys))).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
    );
  });

  test('writes a lone surrogate as its escape', () => {
    expect(canonicalJson('\ud800')).toBe('"\\ud800"');
  });
});

test('jsonEqual tells inherited from own properties, and arrays from objects', () => {
  expect(jsonEqual({ a: 1 }, { toString: 1 })).toBe(false);
  expect(jsonEqual(JSON.parse('{"__proto__":{}}'), {})).toBe(false);
  expect(jsonEqual([], {})).toBe(false);
  expect(jsonEqual({ length: 0 }, [])).toBe(false);
  expect(jsonEqual({ a: undefined, b: 1 }, { b: 1 })).toBe(true);
  expect(jsonEqual({ a: null }, {})).toBe(false);
});

function refusal(fn: () => unknown): WaymarkError {
  try {
    fn();
  } catch (error) {
    if (error instanceof WaymarkError) return error;
    throw error;
  }
  throw new Error('It was not refused.');
}

function shuffled(value: Json, seed: number): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shuffled(item, seed));
  const entries = Object.entries(value).map(
    ([key, child]) => [key, shuffled(child ?? null, seed)] as const,
  );
  entries.sort(
    ([a], [b]) => ((a.length * 31 + seed) % 7) - ((b.length * 31 + seed) % 7) || (a < b ? 1 : -1),
  );
  const result = {};
  for (const [key, child] of entries) {
    Object.defineProperty(result, key, { value: child, enumerable: true });
  }
  return result;
}
