import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from './action.ts';
import { systemClock } from './time.ts';

const count = defineAction(
  {
    key: '/test/count',
    name: 'count',
    description: 'Counts up',
    metadata: { kind: 'test' },
    input: z.object({ to: z.coerce.number().max(1000) }),
    output: z.object({ total: z.number() }),
    stream: z.number(),
  },
  async ({ to }, { send, signal }) => {
    for (let n = 1; n <= to && !signal.aborted; n++) await send(n);
    return { total: to };
  },
);

describe('an action', () => {
  test('describes itself', () => {
    expect(count.descriptor).toMatchObject({
      key: '/test/count',
      name: 'count',
      description: 'Counts up',
      metadata: { kind: 'test' },
      inputSchema: { type: 'object', required: ['to'] },
      outputSchema: { properties: { total: { type: 'number' } } },
      streamSchema: { type: 'number' },
    });
    expect(Object.keys(defineAction({ key: '/x', name: 'x' }, () => 1).descriptor)).toEqual([
      'key',
      'name',
    ]);
  });

  test('is refused at definition if a schema cannot be described', () => {
    expect(() => defineAction({ key: '/x', name: 'x', input: z.date() }, () => 1)).toThrow(
      'JSON Schema',
    );
  });

  test('checks its input at the door, and what its function returns', async () => {
    expect(await count.run({ to: '3' })).toEqual({ total: 3 });
    await expect(count.run({ to: 'many' })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('The input of /test/count'),
    });
    const wrong = defineAction({ key: '/x', name: 'x', output: z.string() }, () => 1 as never);
    await expect(wrong.run(undefined)).rejects.toThrow('The output of /x');
  });

  test('passes its chunks to a listener', async () => {
    const chunks: number[] = [];
    await count.run({ to: 3 }, { onChunk: (chunk) => void chunks.push(chunk) });
    expect(chunks).toEqual([1, 2, 3]);
  });

  test('gets signal and context, and does not start when it is too late', async () => {
    const seen = defineAction({ key: '/x', name: 'x' }, (_, { signal, context }) => ({
      aborted: signal.aborted,
      context,
    }));
    expect(await seen.run(1, { context: { user: 'u1' } })).toEqual({
      aborted: false,
      context: { user: 'u1' },
    });
    await expect(seen.run(1, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      status: 'CANCELLED',
    });
  });
});

describe('a streamed action', () => {
  test('gives chunks as they come and its output', async () => {
    const { stream, output } = count.stream({ to: 40 });
    const chunks: number[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks).toHaveLength(40);
    expect(await output).toEqual({ total: 40 });
  });

  test('completes although its stream is not read', async () => {
    expect(await count.stream({ to: 100 }).output).toEqual({ total: 100 });
  });

  test('waits for onChunk', async () => {
    const go = Promise.withResolvers<void>();
    const chunks: number[] = [];
    const run = count.run(
      { to: 3 },
      {
        onChunk: async (chunk) => {
          chunks.push(chunk);
          await go.promise;
        },
      },
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(chunks).toEqual([1]);
    go.resolve();
    await run;
    expect(chunks).toEqual([1, 2, 3]);
  });

  test('fails in both places, without an unhandled rejection', async () => {
    const { stream, output } = count.stream({ to: 'x' });
    await expect(output).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    count.stream({ to: 'x' });
  });

  test('ends when it is aborted', async () => {
    const abort = new AbortController();
    const endless = defineAction({ key: '/x', name: 'x' }, async (_, { send, signal }) => {
      for (let n = 0; ; n++) {
        await systemClock.sleep(1, signal);
        await send(n);
      }
    });
    const { stream, output } = endless.stream(undefined, { signal: abort.signal });
    for await (const _ of stream) {
      abort.abort();
      break;
    }
    await expect(output).rejects.toMatchObject({ status: 'CANCELLED' });
  });
});
