import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonEqual } from '../../../src/core/json/json.ts';
import { isRecord, type Json } from './json.ts';
import { type Change, changesBetween, pathText } from './json-changes.ts';

const said = (before: Json | undefined, after: Json | undefined): string[] =>
  changesBetween(before, after).map(({ kind, path }) => `${kind} ${pathText(path)}`);

test('differences are listed by path', () => {
  const before = { topics: ['a', 'b'], budget: 400, old: true };
  const after = { topics: ['a', 'b', 'c'], budget: 300, city: { name: 'Bergen' } };
  expect(said(before, after)).toEqual([
    'added topics[2]',
    'changed budget',
    'removed old',
    'added city',
  ]);
});

test('an insertion into a list is one change', () => {
  expect(said(['a', 'b', 'c'], ['a', 'x', 'b', 'c'])).toEqual(['added [1]']);
});

test('the first state is news field by field', () => {
  expect(said(undefined, { a: 1, b: 2 })).toEqual(['added a', 'added b']);
  expect(said({ a: 1 }, undefined)).toEqual(['removed everything']);
});

test('names that every object knows are names like any other', () => {
  expect(changesBetween({}, { constructor: 'x', toString: 'y' })).toEqual([
    { path: ['constructor'], kind: 'added', after: 'x' },
    { path: ['toString'], kind: 'added', after: 'y' },
  ]);
});

test('a path is written as people write it', () => {
  expect(pathText(['a', 0, 'b-c', 'd e', 1])).toBe('a[0].b-c["d e"][1]');
});

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;

test('every change is true of both documents, and there is none exactly when they say the same', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      const changes = changesBetween(before, after);
      expect(changes.length === 0).toBe(jsonEqual(before, after));
      for (const { path, kind, before: was, after: is } of changes) {
        if (kind !== 'added') expect(at(before, path)).toEqual(was);
        if (kind !== 'removed') expect(at(after, path)).toEqual(is);
      }
    }),
  );
});

function at(document: Json, path: Change['path']): Json | undefined {
  return path.reduce<Json | undefined>((value, step) => {
    if (Array.isArray(value)) return value[Number(step)];
    return isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }, document);
}
