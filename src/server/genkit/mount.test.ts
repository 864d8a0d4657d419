import fc from 'fast-check';
import { expect, test } from 'vitest';
import { genkitFormat, toAscii } from './mount.ts';

test('JSON in ASCII reads as the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
      const ascii = toAscii(JSON.stringify([value, text]));
      expect(ascii).toMatch(/^[\0-\x7f]*$/);
      expect(JSON.parse(ascii)).toEqual(JSON.parse(JSON.stringify([value, text])));
    }),
  );
});

test('every frame is one data line', () => {
  const chunk = { modelChunk: { content: [{ text: 'ä\n\u2028' }] }, status: 1 };
  const frame = genkitFormat.encode({ type: 'chunk', id: '1.1', chunk });
  expect(frame).toBe(
    'data: {"message":{"modelChunk":{"content":[{"text":"\\u00e4\\n\\u2028"}]}}}\n\n',
  );
  expect(genkitFormat.encode({ type: 'chunk', chunk: { status: 'thinking' } })).toBe('');
  expect(genkitFormat.keepAlive).toBe('data: {"message":{}}\n\n');
});
