import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Json, toJson } from '../../../core/json/json.ts';
import { createCipher } from './cipher.ts';
import { type DocumentRef, documentRef, readDocument, writeDocument } from './document.ts';

const cipher = createCipher(undefined, 'text');

/** Writes states one after the other, each as the difference to the one before, and keeps the rows. */
function write(values: readonly Json[]): { readonly ref?: DocumentRef; readonly rows: string[] } {
  let base: { readonly ref: DocumentRef; readonly value: Json } | undefined;
  // The newest first and the whole document last, as they are read.
  let rows: string[] = [];
  for (const [place, given] of values.entries()) {
    const value = toJson(given, 'custom');
    const written = writeDocument(base, value, undefined, cipher);
    if (written.kind === 'whole') rows = [String(written.body)];
    if (written.kind === 'patch') rows = [String(written.body), ...rows];
    const ref = documentRef(written, place + 1);
    if (ref !== undefined) base = { ref, value };
  }
  return { ...(base && { ref: base.ref }), rows };
}

test('any line of documents reads as the last one, and its note is right', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 12 }), (values) => {
      const { ref, rows } = write(values as Json[]);
      const read = readDocument(ref?.rowId ?? 0, rows);
      expect(read?.value).toEqual(toJson(values.at(-1), 'custom'));
      expect(read?.ref).toEqual(ref);
    }),
  );
});

test('a small change of a large document is its patch', () => {
  const large = Object.fromEntries(
    Array.from({ length: 400 }, (_, n) => [`key ${n}`, 'x'.repeat(90)]),
  );
  const { rows } = write([large, { ...large, 'key 7': 'changed' }]);
  expect(rows).toHaveLength(2);
  expect(rows[0]?.length).toBeLessThan(100);
});

test('patches never outweigh their document', () => {
  const large = { text: 'x'.repeat(3000), n: 0 };
  const { rows } = write(Array.from({ length: 500 }, (_, n) => ({ ...large, n })));
  const patches = rows.slice(0, -1).reduce((sum, row) => sum + row.length, 0);
  expect(patches).toBeLessThanOrEqual(rows.at(-1)?.length ?? 0);
  expect(rows.length).toBeLessThan(30);
});

test('what did not change is written no second time', () => {
  const value = toJson({ a: [1, 2] }, 'custom');
  const ref = { rowId: 5, patches: 0, patchLength: 0, length: 9 };
  expect(writeDocument({ ref, value }, toJson({ a: [1, 2] }, 'custom'), undefined, cipher)).toEqual(
    {
      kind: 'same',
      ref,
    },
  );
});

test('a patch that does not lead there is not believed', () => {
  const text = 'x'.repeat(200);
  const value = toJson({ text, n: 1 }, 'custom');
  const ref = { rowId: 1, patches: 0, patchLength: 0, length: JSON.stringify(value).length };
  const wrong = [{ op: 'replace', path: '/n', value: 3 }] as const;
  const written = writeDocument({ ref, value }, toJson({ text, n: 2 }, 'custom'), wrong, cipher);
  const rows = [written.kind === 'patch' ? String(written.body) : '', JSON.stringify(value)];
  expect(readDocument(2, rows)?.value).toEqual({ text, n: 2 });
});
