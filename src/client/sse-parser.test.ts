import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSseParser, type SseMessage } from './sse-parser.ts';

const encoder = new TextEncoder();

function parse(text: string, cuts: readonly number[] = []): SseMessage[] {
  const bytes = encoder.encode(text);
  const parser = createSseParser();
  const places = [0, ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)];
  return places.flatMap((from, at) => [...parser.push(bytes.subarray(from, places[at + 1]))]);
}

test('an event has its name, its data and its id', () => {
  expect(parse('event: chunk\nid: 1.4\ndata: {"a":1}\n\n')).toEqual([
    { event: 'chunk', id: '1.4', data: '{"a":1}' },
  ]);
});

test('lines may end with CR, LF or CRLF', () => {
  for (const end of ['\r', '\n', '\r\n']) {
    expect(parse(['data: a', 'data: b', '', 'data: c', '', ''].join(end))).toEqual([
      { event: 'message', data: 'a\nb' },
      { event: 'message', data: 'c' },
    ]);
  }
});

test('a CRLF that is cut in two is one line ending', () => {
  expect(parse('data: a\r\n\r\ndata: b\r\n\r\n', [8, 10])).toEqual([
    { event: 'message', data: 'a' },
    { event: 'message', data: 'b' },
  ]);
});

test('comments, unknown fields and empty events say nothing', () => {
  expect(
    parse(': keep-alive\n\nretry: 10\n\nevent: chunk\n\ndata\n\ndata:\n\ndata: x\n\n'),
  ).toEqual([{ event: 'message', data: 'x' }]);
});

test('only one space after the colon is taken away', () => {
  expect(parse('data:  a\n\ndata:b\n\n').map(({ data }) => data)).toEqual([' a', 'b']);
});

test('an id stays until there is another, and one with NUL is ignored', () => {
  expect(parse('id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\n').map(({ id }) => id)).toEqual([
    '1',
    '1',
    '1',
  ]);
});

test('a byte order mark at the start is no part of the first field', () => {
  expect(parse('\uFEFFdata: a\n\n')).toEqual([{ event: 'message', data: 'a' }]);
});

test('an event that no blank line completes is never given out', () => {
  expect(parse('data: a\n\ndata: half')).toEqual([{ event: 'message', data: 'a' }]);
});

test('a megabyte in one line that comes byte by byte takes linear time', () => {
  const parser = createSseParser();
  const bytes = encoder.encode(`data: ${'é'.repeat(500_000)}\n\n`);
  const messages = [];
  for (let at = 0; at < bytes.length; at++)
    messages.push(...parser.push(bytes.subarray(at, at + 1)));
  expect(messages.map(({ data }) => data.length)).toEqual([500_000]);
});

const text = fc.string({
  unit: fc.constantFrom('a', ':', ' ', 'ß', '漢', '🎒', '"', '\\', 'data', '\u2028'),
});
const event = fc.record({
  event: fc.constantFrom('chunk', 'output', 'reset'),
  id: fc.tuple(fc.nat(9), fc.nat()).map(([attempt, seq]) => `${attempt}.${seq}`),
  lines: fc.array(text, { minLength: 1, maxLength: 3 }).filter((lines) => lines.join('\n') !== ''),
  comment: fc.option(text),
});

test('wherever the stream is cut, the same events come out', () => {
  fc.assert(
    fc.property(
      fc.array(event),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat(), { maxLength: 20 }),
      (events, end, cuts) => {
        const wire = events.flatMap(({ event, id, lines, comment }) => [
          ...(comment === null ? [] : [`:${comment}`]),
          `event: ${event}`,
          `id: ${id}`,
          ...lines.map((line) => `data: ${line}`),
          '',
        ]);
        const expected = events.map(({ event, id, lines }) => ({
          event,
          id,
          data: lines.join('\n'),
        }));
        expect(parse([...wire, ''].join(end), cuts)).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});
