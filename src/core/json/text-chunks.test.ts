import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashLists, textChunks } from './text-chunks.ts';

const words = (count: number): string =>
  Array.from({ length: count }, (_, at) => `${(at * 7919) % 10_007} `).join('');

test('does not change: where texts are cut is part of stored hashes', () => {
  const chunks = textChunks(words(10_000));
  expect(chunks.map(({ text }) => text.length).slice(0, 6)).toMatchInlineSnapshot(`
    [
      4130,
      4201,
      4121,
      2770,
      4160,
      4203,
    ]
  `);
  expect(hashLists(chunks.map(({ hash }) => hash)).at(-1)?.hash).toMatchInlineSnapshot(
    `"26550f5945b95dfeca567364867878dcf41081b14ee89cccefdd195e58265797"`,
  );
});

test('the chunks of an edited text are those of the text, and most are the former ones', () => {
  const edit = fc.record({
    kind: fc.constantFrom('insert', 'remove', 'replace'),
    at: fc.nat(100_000),
    text: fc.string({ unit: 'binary', maxLength: 20 }),
  });
  const text = words(20_000);
  const former = textChunks(text);
  fc.assert(
    fc.property(edit, ({ kind, at, text: piece }) => {
      const behind = kind === 'insert' ? at : at + 4;
      const edited = `${text.slice(0, at)}${kind === 'remove' ? '' : piece}${text.slice(behind)}`;
      const chunks = textChunks(edited, former);
      expect(chunks).toEqual(textChunks(edited));
      expect(chunks.map((chunk) => chunk.text).join('')).toBe(edited);
      const known = new Set(former);
      expect(chunks.filter((chunk) => !known.has(chunk)).length).toBeLessThan(6);
    }),
    { numRuns: 200 },
  );
});

test('a text and what was put before, behind or into it share chunks, whatever it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.nat(400), (unit, times) => {
      const text = unit.repeat(times);
      const chunks = textChunks(text);
      expect(chunks.map((chunk) => chunk.text).join('')).toBe(text);
      const cut = textChunks(text.slice(0, -1), chunks);
      expect(cut).toEqual(textChunks(text.slice(0, -1)));
    }),
  );
});

test('no chunk splits a pair of surrogates', () => {
  const chunks = textChunks('😀'.repeat(40_000));
  for (const { text } of chunks) expect(text.isWellFormed()).toBe(true);
});
