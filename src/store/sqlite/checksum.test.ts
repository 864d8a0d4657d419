import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sumOfValues } from './checksum.ts';

const values = fc.array(
  fc.oneof(
    fc.constant(null),
    fc.maxSafeInteger(),
    fc.constantFrom(0, 9, 10, 1_763_200_000_000, Number.MAX_SAFE_INTEGER),
    fc.string({ unit: 'grapheme', maxLength: 100 }).filter((text) => !text.includes('\0')),
    fc.string({ unit: fc.constantFrom('a', "'", 'é', '𝄞'), minLength: 50, maxLength: 80 }),
    fc.uint8Array({ maxLength: 40 }),
  ),
  { maxLength: 20 },
);

test('the checksum of values is that of their texts in SQLite', () => {
  const db = new DatabaseSync(':memory:');
  const quote = db.prepare('SELECT quote(CAST(? AS INTEGER)) AS whole, quote(?) AS other');
  fc.assert(
    fc.property(values, (row) => {
      const texts = row.map((value) => {
        const { whole, other } = quote.get(value, value) ?? {};
        return typeof value === 'number' ? whole : other;
      });
      expect(sumOfValues(row)).toBe(crc32(texts.join('')));
    }),
    { numRuns: 500 },
  );
  db.close();
});
