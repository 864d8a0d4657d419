import fc from 'fast-check';
import { type Json, setOwn } from '../../src/core/json/json.ts';

/** Property names that can pollute prototypes. */
export const nastyKeys: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'length',
  '',
  '0',
  '-',
  'a/b',
  '~',
  '~1',
  'é',
  '\u{1f600}',
];

/** Any JSON value, small enough to read in a failure report, with awkward keys and shapes. */
export function anyJson(keys: readonly string[] = nastyKeys): fc.Arbitrary<Json> {
  const { value } = fc.letrec<{ value: Json; scalar: Json }>((tie) => ({
    scalar: fc.oneof(
      fc.constant(null),
      fc.boolean(),
      fc.integer({ min: -3, max: 3 }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.constantFrom('', 'a', 'b'),
    ),
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      tie('scalar'),
      fc.array(tie('value'), { maxLength: 6 }),
      fc.array(fc.tuple(anyKey(keys), tie('value')), { maxLength: 5 }).map(fromPairs),
    ),
  }));
  return value;
}

function anyKey(keys: readonly string[]): fc.Arbitrary<string> {
  // fast-check's own strings contain the dangerous ones now and then.
  const other = fc.string().filter((key) => keys.includes(key) || !nastyKeys.includes(key));
  return fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...keys), other);
}

function fromPairs(pairs: readonly (readonly [string, Json])[]): Json {
  const object: Record<string, Json> = {};
  for (const [key, value] of pairs) setOwn(object, key, value);
  return object;
}
