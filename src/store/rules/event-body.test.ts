import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Chunk } from '../../protocol/turn.ts';
import type { RunEvent } from '../contract/store.ts';
import { packEvents, unpackEvents } from './event-body.ts';

const part = fc.oneof(
  { weight: 8, arbitrary: fc.record({ text: fc.string({ maxLength: 4 }) }) },
  fc.record({ text: fc.string({ maxLength: 4 }), metadata: fc.constant({ a: 1 }) }),
  fc.record({ reasoning: fc.string({ maxLength: 4 }) }),
);
const modelChunk = fc.record(
  {
    role: fc.constantFrom('model', 'tool'),
    index: fc.nat({ max: 1 }),
    aggregated: fc.boolean(),
    content: fc.oneof({ weight: 8, arbitrary: fc.tuple(part) }, fc.array(part, { maxLength: 2 })),
  },
  { requiredKeys: ['content'] },
);
const chunk = fc.oneof(
  { weight: 8, arbitrary: fc.record({ modelChunk }) },
  fc.record({ modelChunk, agent: fc.constant('sub') }),
  fc.record({ status: fc.string({ maxLength: 3 }) }),
) as fc.Arbitrary<Chunk>;

const events: fc.Arbitrary<readonly RunEvent[]> = fc
  .array(fc.tuple(chunk, fc.constantFrom(1, 1, 1, 1, 2)), { maxLength: 30 })
  .map((steps) => {
    let seq = -1;
    return steps.map(([each, step]) => {
      seq += step;
      return { attempt: 3, seq, chunk: each };
    });
  });

test('events come out as they were put in', () => {
  fc.assert(
    fc.property(events, (given) => {
      const plain = JSON.parse(JSON.stringify(given)) as RunEvent[];
      expect(unpackEvents(3, packEvents(given))).toEqual(plain);
    }),
    { numRuns: 500 },
  );
});

test('a piece of an answer takes little more than its text', () => {
  const pieces = Array.from({ length: 1000 }, (_, seq) => ({
    attempt: 1,
    seq,
    chunk: { modelChunk: { role: 'model', index: 0, content: [{ text: 'abcdefghij0123456789' }] } },
  })) as RunEvent[];
  expect(packEvents(pieces).length).toBeLessThan(24_000);
});

test('a body that was written out is still read', () => {
  const chunks = [{ status: 'a' }, { modelChunk: { content: [{ text: 'b' }] } }] as const;
  const body = JSON.stringify(chunks.map((each, seq) => [seq, each]));
  expect(unpackEvents(2, body)).toEqual(
    chunks.map((each, seq) => ({ attempt: 2, seq, chunk: each })),
  );
});
