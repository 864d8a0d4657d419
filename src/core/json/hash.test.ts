import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyJson } from './any-json.ts';
import { contentHash, sha256 } from './hash.ts';
import { canonicalJson, type Json, jsonEqual, parseJson, toJson } from './json.ts';
import { applyPatch } from './patch.ts';
import { produce } from './produce.ts';

test('sha256 is that of the UTF-8 bytes', () => {
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(sha256('€')).toBe('c4cc90ed3d26f12d4b08a75140970a7904035c31cbb4515a83f19b9003c00d1d');
});

/** The definition, written down a second time and without any cleverness. */
function byDefinition(value: Json): string {
  const text = (node: Json): string => {
    if (typeof node !== 'object' || node === null) return JSON.stringify(node);
    const inner = (child: Json): string => {
      const childText = text(child);
      const isContainer = typeof child === 'object' && child !== null;
      return isContainer && childText.length > 256 ? `#${sha256(childText)}` : childText;
    };
    if (Array.isArray(node)) return `[${node.map(inner).join(',')}]`;
    const members = Object.entries(node).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, child]) => `${JSON.stringify(key)}:${inner(child ?? null)}`).join(',')}}`;
  };
  return sha256(text(value));
}

const bigger = fc.oneof(
  anyJson(),
  fc.tuple(
    anyJson(),
    fc.string({ minLength: 200, maxLength: 300 }),
    fc.array(anyJson(), { maxLength: 60 }),
  ),
);

test('is what its definition says', () => {
  fc.assert(
    fc.property(bigger, (value) => {
      expect(contentHash(value)).toBe(byDefinition(value));
    }),
  );
});

test('does not change: these values are stored', () => {
  expect(contentHash(null)).toBe(sha256('null'));
  expect(contentHash('text')).toBe(sha256('"text"'));
  expect(contentHash({ b: [1, 2], a: 'x' })).toBe(sha256('{"a":"x","b":[1,2]}'));
  const long = 'x'.repeat(300);
  expect(contentHash({ list: [long] })).toBe(sha256(`{"list":#${sha256(`["${long}"]`)}}`));
  expect(contentHash({ long })).toBe(sha256(`{"long":"${long}"}`));
});

test('is equal for equal values, whatever the order of their properties, and else different', () => {
  fc.assert(
    fc.property(bigger, bigger, (a, b) => {
      expect(contentHash(a) === contentHash(b)).toBe(jsonEqual(a, b));
      expect(contentHash(parseJson(canonicalJson(a), 'it'))).toBe(contentHash(a));
    }),
  );
});

test('is the same whether parts were hashed before or not', () => {
  fc.assert(
    fc.property(fc.array(bigger, { minLength: 1, maxLength: 5 }), bigger, (items, other) => {
      const doc = toJson({ items, other }, 'it');
      for (const item of doc.items) contentHash(item);
      contentHash(doc);
      const changed = produce(doc, (draft) => {
        draft.items[0] = 'changed';
      }).value;
      expect(contentHash(changed)).toBe(byDefinition(JSON.parse(JSON.stringify(changed))));
    }),
  );
});

test('a value that imitates a hash differs from the value behind the hash', () => {
  const long = ['x'.repeat(300)];
  expect(contentHash([long])).not.toBe(contentHash([`#${sha256(canonicalJson(long))}`]));
});

test('a small change in a large document costs little', () => {
  const sections = Array.from({ length: 300 }, (_, n) => [
    `s${n}`,
    Array.from({ length: 50 }, (_, m) => ({ n, m, text: 'some text' })),
  ]);
  const doc = toJson(Object.fromEntries(sections), 'it');
  const started = performance.now();
  contentHash(doc);
  const whole = performance.now() - started;
  const versions = Array.from({ length: 20 }, (_, n) =>
    applyPatch(doc, [{ op: 'replace', path: `/s${n}/7/text`, value: 'new' }]),
  );
  const again = performance.now();
  for (const version of versions) contentHash(version);
  expect((performance.now() - again) / versions.length).toBeLessThan(whole / 5);
});
