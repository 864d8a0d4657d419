import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from './action.ts';
import { defineBidiAction } from './bidi-action.ts';
import { systemClock } from './time/clock.ts';

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

  test('hands its chunks to whoever listens', async () => {
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

  test('whose stream nobody reads still comes to its output', async () => {
    expect(await count.stream({ to: 100 }).output).toEqual({ total: 100 });
  });

  test('waits for whoever takes its chunks through onChunk', async () => {
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

describe('a bidirectional action', () => {
  const slow = z.object({ n: z.number() }).refine(async ({ n }) => {
    await new Promise((resolve) => setTimeout(resolve, n === 1 ? 10 : 0));
    return n < 100;
  }, 'Too large.');
  const adder = defineBidiAction(
    {
      key: '/test/adder',
      name: 'adder',
      init: z.object({ start: z.number().default(0) }),
      input: z.object({ n: z.number() }),
      output: z.number(),
      stream: z.number(),
    },
    async ({ init, inputs, send, context }) => {
      let sum = init.start + Number(context.bonus ?? 0);
      for await (const { n } of inputs) {
        sum += n;
        await send(sum);
      }
      return sum;
    },
  );

  test('describes itself', () => {
    expect(adder.descriptor).toMatchObject({
      key: '/test/adder',
      initSchema: { type: 'object' },
      inputSchema: { required: ['n'] },
    });
  });

  test('takes an init, inputs and a context', async () => {
    const connection = adder.connect({ start: 5 }, { context: { bonus: 100 } });
    await connection.send({ n: 1 });
    await connection.send({ n: 2 });
    expect(await connection.output()).toBe(108);
    expect(await adder.connect({}).output()).toBe(0);
  });

  test('a bad init ends the connection, a bad input only its send', async () => {
    const broken = adder.connect({ start: 'x' } as never);
    await expect(broken.output()).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('The init of'),
    });
    const connection = adder.connect({});
    await expect(connection.send({ n: 'x' } as never)).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    void connection.send({} as never);
    await connection.send({ n: 1 });
    expect(await connection.output()).toBe(1);
    await expect(connection.send({ n: 1 })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
  });

  test('inputs keep their order, also when their checks take different times and nobody waits', async () => {
    const echo = defineBidiAction({ key: '/x', name: 'x', input: slow }, async ({ inputs }) => {
      const seen: number[] = [];
      for await (const { n } of inputs) seen.push(n);
      return seen;
    });
    const connection = echo.connect(undefined);
    for (const n of [1, 2, 100, 3]) void connection.send({ n });
    connection.close();
    expect(await connection.output()).toEqual([1, 2, 3]);
  });

  test('a full queue of inputs does not keep the output from being asked for', async () => {
    const deaf = defineBidiAction({ key: '/x', name: 'x' }, async ({ send }) => {
      for (let n = 0; n < 50; n++) await send(n);
      return 'done';
    });
    const connection = deaf.connect(undefined, { capacity: 1 });
    const sends = [1, 2, 3].map((n) => connection.send(n));
    expect(await connection.output()).toBe('done');
    const results = await Promise.allSettled(sends);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });
});
