import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyJson } from '../../../test/support/any-json.ts';
import { contentHash, formerContentHash, isContentHash, sha256 } from './hash.ts';
import { canonicalJson, type Json, jsonEqual, jsonLength, parseJson, toJson } from './json.ts';
import { applyPatch } from './patch.ts';
import { produce } from './produce.ts';
import { chunkEnd, hashLists } from './text-chunks.ts';

test('sha256 is that of the UTF-8 bytes', () => {
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(sha256('€')).toBe('c4cc90ed3d26f12d4b08a75140970a7904035c31cbb4515a83f19b9003c00d1d');
});

/** The definition, written down a second time and without any cleverness. */
function byDefinition(value: Json): string {
  const top = token(value);
  return top.startsWith('#') ? top.slice(1) : sha256(top);
}

function token(node: Json): string {
  if (typeof node === 'string' && node.length > 4096) return `#${longTextHash(node)}`;
  if (typeof node !== 'object' || node === null) return JSON.stringify(node);
  const text = Array.isArray(node)
    ? `[${members(node.map(token))}]`
    : `{${members(
        Object.entries(node)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, child]) => `${JSON.stringify(key)}:${token(child ?? null)}`),
      )}}`;
  return text.length > 256 ? `#${sha256(text)}` : text;
}

function members(tokens: readonly string[]): string {
  if (tokens.length <= 64) return tokens.join(',');
  const groups = Array.from({ length: Math.ceil(tokens.length / 32) }, (_, at) =>
    tokens.slice(at * 32, at * 32 + 32),
  );
  return members(groups.map((group) => `#${sha256(`(${group.join(',')})`)}`));
}

function longTextHash(text: string): string {
  const hashes: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = chunkEnd(text, at);
    const piece = text.slice(at, end);
    hashes.push(sha256(piece.isWellFormed() ? `t${piece}` : `j${JSON.stringify(piece)}`));
    at = end;
  }
  return hashLists(hashes).at(-1)?.hash ?? '';
}

/** The first definition, likewise. */
function byFormerDefinition(value: Json): string {
  const text = (node: Json): string => {
    if (typeof node !== 'object' || node === null) return JSON.stringify(node);
    const inner = (child: Json): string => {
      const childText = text(child);
      const isContainer = typeof child === 'object' && child !== null;
      return isContainer && childText.length > 256 ? `#${sha256(childText)}` : childText;
    };
    if (Array.isArray(node)) return `[${node.map(inner).join(',')}]`;
    const own = Object.entries(node).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${own.map(([key, child]) => `${JSON.stringify(key)}:${inner(child ?? null)}`).join(',')}}`;
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
  // Wide containers, in one level of groups and in two, and long texts.
  fc.array(fc.integer(), { minLength: 60, maxLength: 200 }),
  fc.integer({ min: 2000, max: 2200 }).map((length) => Array.from({ length }, (_, at) => at)),
  fc.dictionary(fc.string(), fc.integer(), { minKeys: 60, maxKeys: 120 }),
  fc.string({ unit: 'binary', minLength: 3, maxLength: 40 }).map((text) => text.repeat(700)),
);

test('is what its definition says', () => {
  fc.assert(
    fc.property(bigger, (value) => {
      expect(contentHash(value)).toBe(byDefinition(value));
      expect(formerContentHash(value)).toBe(byFormerDefinition(value));
      expect(isContentHash(value, byFormerDefinition(value))).toBe(true);
      const json = toJson(value, 'value');
      contentHash(json);
      // Of a scalar it is a rough figure.
      if (typeof json === 'object' && json !== null) {
        expect(jsonLength(json, Number.POSITIVE_INFINITY)).toBe(canonicalJson(json).length);
      }
    }),
  );
});

test('is as by the first definition unless a container is wide or a text is long', () => {
  fc.assert(
    fc.property(anyJson(), (value) => {
      expect(contentHash(value)).toBe(byFormerDefinition(value));
    }),
  );
  const list = Array.from({ length: 65 }, (_, at) => at);
  expect(contentHash(list)).not.toBe(byFormerDefinition(list));
  expect(isContentHash(list, sha256('[]'))).toBe(false);
});

test('is the same after any edits of wide containers and long texts as when hashed at once', () => {
  const edit = fc.record({
    kind: fc.constantFrom('set', 'push', 'shift', 'key', 'unkey', 'text', 'nested'),
    place: fc.nat(3000),
    value: fc.integer(),
  });
  const start = (length: number) => ({
    list: Array.from({ length }, (_, at) => ({ at, text: 'x'.repeat(at % 300) })),
    map: Object.fromEntries(Array.from({ length }, (_, at) => [`key-${at}`, [at]])),
    text: Array.from({ length: 20 * length }, (_, at) => `${(at * 7919) % 1009} `).join(''),
  });
  fc.assert(
    fc.property(fc.nat(200), fc.array(edit, { maxLength: 6 }), (length, edits) => {
      let doc = toJson(start(length), 'it');
      contentHash(doc);
      for (const { kind, place, value } of edits) {
        doc = produce(doc, (draft) => {
          const item = draft.list[place % (draft.list.length || 1)];
          if (kind === 'set' && item) item.at = value;
          if (kind === 'push') draft.list.push({ at: value, text: '' });
          if (kind === 'shift') draft.list.shift();
          if (kind === 'key') draft.map[`key-${place}`] = [value];
          if (kind === 'unkey') delete draft.map[`key-${place % 200}`];
          if (kind === 'nested') draft.map[`key-${place % 200}`]?.push(value);
          if (kind === 'text') {
            draft.text = `${draft.text.slice(0, place)}${value}${draft.text.slice(place + 3)}`;
          }
        }).value;
        expect(contentHash(doc)).toBe(byDefinition(JSON.parse(JSON.stringify(doc))));
      }
    }),
    { numRuns: 60 },
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
