import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toJson } from '../../../core/json/json.ts';
import type { Message } from '../../../protocol/message.ts';
import { OutsideHeap } from './outside-heap.ts';

/** A pool that has taken what it leaves in the heap. */
function filled(): OutsideHeap {
  const pool = new OutsideHeap();
  for (let left = 20; left > 0; left--) pool.add('x'.repeat(1024));
  return pool;
}

function toMessage(text: string): Message {
  return toJson({ role: 'tool', content: [{ text }, { text }] }, 'message') as unknown as Message;
}

test('whatever is put outside the heap reads as it was, across pages', () => {
  const pool = filled();
  // Halves of surrogate pairs included.
  const text = fc.string({ unit: 'binary', minLength: 16, maxLength: 40_000, size: 'max' });
  const units = fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 16 })
    .map((codes) => String.fromCharCode(...codes));
  const latin = fc
    .array(fc.integer({ min: 0, max: 0xff }), { minLength: 16 })
    .map((codes) => String.fromCharCode(...codes));
  const content = fc.oneof(text, units, latin, text.map(toMessage), units.map(toMessage));
  const taken: { place: number; content: string | Message }[] = [];
  fc.assert(
    fc.property(content, (each) => {
      const place = pool.add(each);
      if (place !== undefined) taken.push({ place, content: each });
    }),
  );
  expect(taken.length).toBeGreaterThan(50);
  for (const { place, content } of taken) expect(pool.read(place)).toEqual(content);
});

test('a message that was put outside reads as frozen', () => {
  const pool = filled();
  const read = pool.read(pool.add(toMessage('a text that is long enough')) ?? -1);
  expect(Object.isFrozen((read as Message).content[0])).toBe(true);
});

test('the first texts, short ones and very long ones stay where they are', () => {
  const text = 'long enough to be put elsewhere';
  expect(new OutsideHeap().add(text)).toBeUndefined();
  const pool = filled();
  expect(pool.add('short')).toBeUndefined();
  expect(pool.add('x'.repeat(65 * 1024))).toBeUndefined();
  expect(pool.read(pool.add(text) ?? -1)).toBe(text);
});
