import fc from 'fast-check';
import { expect, test } from 'vitest';
import { artifactBytes, bytesResponse } from './artifacts.ts';

const ofUrl = (url: string) => artifactBytes({ name: 'a', parts: [{ media: { url } }] });
const data = Uint8Array.from({ length: 1_000_000 }, (_, at) => (at * 31) % 251);
const large = ofUrl(`data:image/png;base64,${Buffer.from(data).toString('base64')}`);

test('S557: any range of data in base64 is decoded as Node decodes all of it', async () => {
  const text = fc.string({
    unit: fc.constantFrom('A', 'b', '9', '+', '/', '-', '\n', '='),
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(text, fc.nat(40), fc.nat(40), async (base64, from, more) => {
      const whole = Buffer.from(base64, 'base64');
      const bytes = ofUrl(`data:;base64,${base64}`);
      expect(bytes.length).toBe(whole.length);
      const to = Math.min(from + more, whole.length);
      if (from > to) return;
      const read: Uint8Array[] = [];
      for await (const piece of bytes.pieces(from, to)) read.push(piece);
      expect(Buffer.concat(read)).toEqual(whole.subarray(from, to));
    }),
  );
});

test('S557: data is decoded in pieces as the client takes them, and of a range only that', async () => {
  const reads: number[] = [];
  const counted = {
    ...large,
    async *pieces(from: number, to: number) {
      for await (const piece of large.pieces(from, to)) {
        reads.push(piece.length);
        yield piece;
      }
    },
  };
  const request = (headers: Record<string, string>): Response =>
    bytesResponse(new Request('http://localhost/', { headers }), counted, 'a');
  const whole = request({});
  expect(reads).toEqual([]);
  expect(new Uint8Array(await whole.arrayBuffer())).toEqual(data);
  expect(reads).toEqual([262_144, 262_144, 262_144, 213_568]);
  reads.length = 0;
  const part = request({ range: 'bytes=700001-700010' });
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(data.slice(700_001, 700_011));
  expect(reads).toEqual([10]);
  reads.length = 0;
  const left = request({ range: 'bytes=1-' });
  await left.body?.cancel();
  expect(reads).toEqual([]);
});
