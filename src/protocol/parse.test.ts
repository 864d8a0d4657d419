import fc from 'fast-check';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { WaymarkError } from '../core/error.ts';
import { message } from './message.ts';
import { isParsedMessage, parseMessage, parseShape, textMessage } from './parse.ts';
import { input } from './turn.ts';

const text = fc.oneof(fc.string(), fc.constantFrom(undefined, null, 1, { a: 1 }));
const part = fc.oneof(
  fc.record({ text }),
  fc.record({ text, metadata: fc.constantFrom(undefined, { a: 1 }) }),
  fc.record({ text, other: fc.constant(1) }),
  fc.record({ data: fc.constant({ b: 2 }) }),
  fc.constantFrom(null, 'text', []),
);
const likely = fc.oneof(
  fc.record(
    {
      role: fc.constantFrom('user', 'model', 'system', 'tool', 'nobody', 1),
      content: fc.oneof(fc.array(part, { maxLength: 3 }), fc.constantFrom('text', undefined)),
      metadata: fc.constantFrom(undefined, { a: 1 }),
      extra: fc.constant(1),
    },
    { requiredKeys: [] },
  ),
  fc.record({ role: fc.constantFrom('user', 'nobody'), content: fc.array(part, { maxLength: 2 }) }),
  fc.constantFrom(null, undefined, 'text', []),
);

test('a message is what its schema says, frozen all through, whichever way it is parsed', () => {
  fc.assert(
    fc.property(likely, (value) => {
      const expected = v.safeParse(message, value);
      if (!expected.success) {
        expect(() => parseMessage(value)).toThrow(WaymarkError);
        return;
      }
      const parsed = parseMessage(value);
      expect(JSON.parse(JSON.stringify(parsed))).toEqual(
        JSON.parse(JSON.stringify(expected.output)),
      );
      expect(isParsedMessage(parsed)).toBe(true);
      expect(parseMessage(parsed)).toBe(parsed);
      expect([parsed, parsed.content, ...parsed.content].every(Object.isFrozen)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test('a message that is parsed is a copy', () => {
  const given = { role: 'user', content: [{ text: 'a' }] };
  const parsed = parseMessage(given);
  given.content[0] = { text: 'b' };
  given.content.push({ text: 'c' });
  expect(parsed).toEqual({ role: 'user', content: [{ text: 'a' }] });
  expect(parsed).toEqual(textMessage('user', 'a'));
});

test('a text that changes while it is read is read once', () => {
  let reads = 0;
  const part = {
    get text(): unknown {
      return reads++ === 0 ? 'a' : 1;
    },
  };
  expect(parseMessage({ role: 'user', content: [part] })).toEqual(textMessage('user', 'a'));
});

/** Objects that count how often one of their properties is read or looked for. */
function counting(count: number, target: object): { items: object[]; reads: () => number } {
  let reads = 0;
  const handler: ProxyHandler<object> = {
    get: (object, key) => {
      reads++;
      return Reflect.get(object, key);
    },
    has: (object, key) => {
      reads++;
      return Reflect.has(object, key);
    },
  };
  const items = Array.from({ length: count }, () => new Proxy({ ...target }, handler));
  return { items, reads: () => reads };
}

test('parsing stops at the first fault, however many there are', () => {
  for (const bad of [{}, { text: 1 }, { unknown: 1 }, { text: 1, media: 2 }]) {
    const few = counting(1, bad);
    const many = counting(10_000, bad);
    for (const { items } of [few, many]) {
      const value = { message: { role: 'user', content: items } };
      expect(() => parseShape(input, value, 'input')).toThrow(/^Not a valid input\. message/);
    }
    expect(many.reads()).toBe(few.reads());
  }
});

test('a part is checked by the options that its keys allow, not by all of them', () => {
  const { items, reads } = counting(1000, { data: 1 });
  parseShape(input, { message: { role: 'user', content: items } }, 'input');
  // Eight keys to look for, then two of the one option.
  expect(reads() / items.length).toBeLessThan(16);
});

test('a part with several contents is the first one that fits', () => {
  const parse = (part: unknown): unknown =>
    parseShape(input, { message: { role: 'user', content: [part] } }, 'input').message?.content[0];
  expect(parse({ text: 'a', data: 1 })).toEqual({ text: 'a' });
  expect(parse({ text: 1, data: 2 })).toEqual({ data: 2 });
  expect(parse({ reasoning: 'a', metadata: { b: 1 }, x: 1 })).toEqual({
    reasoning: 'a',
    metadata: { b: 1 },
  });
  expect(() => parse({ text: 1 })).toThrow('message.content.0.text: ');
  expect(() => parse({})).toThrow('Expected a part with one of: text, media');
});

test('the text of a fault is short, whatever it echoes', () => {
  const value = { message: { role: 'x'.repeat(100_000), content: [] } };
  try {
    parseShape(input, value, 'input');
    expect.unreachable();
  } catch (error) {
    expect((error as Error).message.length).toBeLessThan(400);
  }
});
