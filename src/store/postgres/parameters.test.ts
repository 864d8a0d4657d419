import { expect, test } from 'vitest';
import { parameters } from './parameters.ts';

test('a parameter gets its number where the text first names it, and values come in that order', () => {
  const { in: p, values } = parameters({ a: 'text', b: 'bigint', c: 'bytea' });
  expect(`${p.c} ${p.a} ${p.c}`).toBe('$1::bytea $2::text $1::bytea');
  expect(values({ a: 'A', b: 1, c: null })).toEqual([null, 'A']);
});

test('a text that names nothing takes no values', () => {
  expect(parameters({ a: 'text' }).values({ a: 'A' })).toEqual([]);
});
