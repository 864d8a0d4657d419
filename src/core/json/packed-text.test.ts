import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packedMark, packText, unpackText } from './packed-text.ts';

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const base64 = fc.string({ unit: fc.constantFrom(...digits), minLength: 1, maxLength: 300 });
const start = fc.constantFrom('', 'data:image/png;base64,', 'data:text/plain;name=a,b;base64,');

test('any piece of a data URL is packed, and unpacked as it was', () => {
  fc.assert(
    fc.property(start, base64, fc.constantFrom('', '=', '=='), (before, data, padding) => {
      const text = before + data + padding;
      const packed = packText(text);
      if (packed === undefined) expect.fail('it was not packed');
      expect(unpackText(packed)).toBe(text);
      expect(packed.length).toBeLessThanOrEqual(before.length + 4 + Math.ceil(data.length * 0.75));
      expect(packed[0]).toBeGreaterThanOrEqual(packedMark);
    }),
  );
});

test('a text is packed as it is, or not at all', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
      const packed = packText(text);
      if (packed !== undefined) expect(unpackText(packed)).toBe(text);
    }),
  );
  for (const text of ['', '=', 'a b', 'data:,%20', 'é,AAAA', 'a-_b', 'AAAA=AAAA', ',']) {
    expect(packText(text), text).toBeUndefined();
  }
});

test('long data is packed in pieces', () => {
  const text = `data:application/zip;base64,${digits.repeat(5_000)}`;
  expect(unpackText(packText(text) ?? new Uint8Array())).toBe(text);
});
