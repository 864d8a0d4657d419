import fc from 'fast-check';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { WaymarkError } from '../core/error.ts';
import { message } from './message.ts';
import { isParsedMessage, parseMessage, textMessage } from './parse.ts';

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
