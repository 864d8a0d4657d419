import { afterEach, expect, test } from 'vitest';
import { WaymarkError } from './error.ts';
import { addSpanSink, inSpan, type SpanRecord } from './trace.ts';

const log: string[] = [];
const ended: SpanRecord[] = [];
let remove = (): void => {};

function listen(): void {
  remove = addSpanSink({
    started: ({ name }) => log.push(`+${name}`),
    ended(span) {
      log.push(`-${span.name}`);
      ended.push(span);
    },
  });
}

afterEach(() => {
  remove();
  log.length = 0;
  ended.length = 0;
});

test('spans are reported as they start and end, below the one they run in, through awaits', async () => {
  listen();
  await inSpan('turn', { attributes: { a: 1 } }, async (span) => {
    await Promise.resolve();
    expect(inSpan('tool', {}, () => 5)).toBe(5);
    await inSpan('chat', {}, async (inner) => {
      await Promise.resolve();
      expect(inner.recording).toBe(true);
    });
    span.setAttributes({ b: 2 });
  });
  expect(log).toEqual(['+turn', '+tool', '-tool', '+chat', '-chat', '-turn']);
  const [tool, chat, turn] = ended;
  expect(turn?.attributes).toEqual({ a: 1, b: 2 });
  expect([tool?.parentId, chat?.parentId, turn?.parentId]).toEqual([
    turn?.spanId,
    turn?.spanId,
    undefined,
  ]);
  expect(new Set(ended.map(({ traceId }) => traceId)).size).toBe(1);
});

test('a failed span has its error, which is thrown on', async () => {
  listen();
  const error = new WaymarkError('NOT_FOUND', 'No such city.');
  await expect(inSpan('tool', {}, () => Promise.reject(error))).rejects.toBe(error);
  expect(() =>
    inSpan('other', {}, () => {
      throw new Error('secret');
    }),
  ).toThrow('secret');
  expect(ended[0]?.error).toMatchObject({ status: 'NOT_FOUND', message: 'No such city.' });
  expect(ended[1]?.error).toMatchObject({ status: 'INTERNAL' });
});

test('nothing is reported for a server’s requests, nor after the listener was removed', () => {
  listen();
  inSpan('GET /', { kind: 'server' }, () => {});
  remove();
  inSpan('turn', {}, () => {});
  expect(log).toEqual([]);
});
