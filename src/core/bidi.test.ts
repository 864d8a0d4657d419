import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Connection, type ConnectionIo, createConnection } from './bidi.ts';
import { type Clock, systemClock } from './time/clock.ts';

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => {
  unhandled.push(reason);
};
beforeEach(() => {
  process.on('unhandledRejection', onUnhandled);
});
afterEach(async () => {
  await tick();
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled.splice(0)).toEqual([]);
});

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Answers each input with its double and gives the sum. */
async function doubling({ inputs, send }: ConnectionIo<number, number>): Promise<number> {
  let sum = 0;
  for await (const input of inputs) {
    sum += input;
    await send(input * 2);
  }
  return sum;
}

async function collect<T>(chunks: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

async function next<T>(connection: Connection<never, unknown, T>): Promise<T | undefined> {
  for await (const chunk of connection.receive()) return chunk;
  return undefined;
}

const isPending = async (promise: Promise<unknown>): Promise<boolean> => {
  await tick();
  const marker = {};
  return (await Promise.race([promise.catch(() => {}), marker])) === marker;
};

describe('a conversation', () => {
  test('inputs go in, chunks come out, the output closes it', async () => {
    const connection = createConnection(doubling);
    await connection.send(1);
    await connection.send(2);
    connection.close();
    expect(await collect(connection.receive())).toEqual([2, 4]);
    expect(await connection.output()).toBe(3);
    await connection.done;
  });

  test('gets its init', async () => {
    const run = async ({ init }: ConnectionIo<never, never, { n: number }>): Promise<number> =>
      init.n;
    expect(await createConnection(run, { init: { n: 7 } }).output()).toBe(7);
  });

  test('leaving receive() early never ends it', async () => {
    const connection = createConnection(doubling);
    for (const input of [1, 2, 3]) {
      await connection.send(input);
      for await (const chunk of connection.receive()) {
        expect(chunk).toBe(input * 2);
        break;
      }
    }
    expect(await connection.output()).toBe(6);
  });

  test('output() closes the input and does not wait for chunks to be read', async () => {
    const connection = createConnection(
      async ({ inputs, send }: ConnectionIo<number, number>) => {
        for await (const input of inputs) for (let n = 0; n < 500; n++) await send(input);
        return 'done';
      },
      { capacity: 1 },
    );
    await connection.send(1);
    expect(await connection.output()).toBe('done');
  });

  test('output() while somebody reads takes nothing away from the reader', async () => {
    const connection = createConnection(doubling, { capacity: 1 });
    const reading = collect(connection.receive());
    await connection.send(1);
    await connection.send(2);
    const output = connection.output();
    expect(await reading).toEqual([2, 4]);
    expect(await output).toBe(3);
  });

  test('a reader that stopped in the middle does not hold up the output', async () => {
    const connection = createConnection(doubling, { capacity: 0 });
    const sends = [1, 2, 3].map((input) => connection.send(input));
    const iterator = connection.receive()[Symbol.asyncIterator]();
    await iterator.next();
    expect(await connection.output()).toBe(6);
    await Promise.all(sends);
  });

  test('the output may be asked for again and again', async () => {
    const connection = createConnection(doubling);
    expect(await Promise.all([connection.output(), connection.output()])).toEqual([0, 0]);
    expect(await connection.output()).toBe(0);
  });
});

describe('backpressure', () => {
  test('the action waits for a slow reader', async () => {
    let produced = 0;
    const connection = createConnection(
      async ({ send }: ConnectionIo<never, number>) => {
        for (let n = 0; n < 10; n++) {
          await send(n);
          produced++;
        }
      },
      { capacity: 2 },
    );
    await tick();
    expect(produced).toBe(2);
    expect(await next(connection)).toBe(0);
    await tick();
    expect(produced).toBe(3);
    connection.abort();
    await connection.done;
  });

  test('the caller waits for a slow action', async () => {
    const go = Promise.withResolvers<void>();
    const connection = createConnection(
      async (io: ConnectionIo<number, number>) => {
        await go.promise;
        return doubling(io);
      },
      { capacity: 1 },
    );
    await connection.send(1);
    const second = connection.send(2);
    expect(await isPending(second)).toBe(true);
    go.resolve();
    await second;
    expect(await connection.output()).toBe(3);
  });

  test('on a normal end nothing is dropped, also what nobody waited for', async () => {
    const connection = createConnection(
      async ({ send }: ConnectionIo<never, number>) => {
        for (let n = 0; n < 20; n++) void send(n);
      },
      { capacity: 2 },
    );
    await tick();
    expect(await collect(connection.receive())).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });
});

describe('sending where nothing is taken any more', () => {
  test('on a closed connection is FAILED_PRECONDITION', async () => {
    const connection = createConnection(doubling);
    connection.close();
    connection.close();
    await expect(connection.send(1)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    void connection.send(2);
  });

  test('on a finished connection is FAILED_PRECONDITION, and so is a send that waited', async () => {
    const go = Promise.withResolvers<void>();
    const connection = createConnection((_: ConnectionIo<number, never>) => go.promise, {
      capacity: 1,
    });
    await connection.send(1);
    const waiting = connection.send(2);
    void connection.send(3);
    go.resolve();
    await expect(waiting).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await expect(connection.send(4)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('has ended'),
    });
  });

  test('what the action sends after its end is refused, and harmless when nobody looks', async () => {
    let io: ConnectionIo<never, number> | undefined;
    const connection = createConnection(async (given: ConnectionIo<never, number>) => {
      io = given;
    });
    await connection.done;
    void io?.send(1);
    await expect(io?.send(2)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  });
});

describe('failure', () => {
  test('comes after the chunks, from receive() and from output(), and done resolves', async () => {
    const failure = new Error('broken');
    const connection = createConnection(async ({ send }: ConnectionIo<never, number>) => {
      await send(1);
      throw failure;
    });
    const seen: number[] = [];
    await expect(
      (async () => {
        for await (const chunk of connection.receive()) seen.push(chunk);
      })(),
    ).rejects.toBe(failure);
    expect(seen).toEqual([1]);
    await expect(connection.output()).rejects.toBe(failure);
    await connection.done;
  });

  test('of an action that throws before its first await is the same', async () => {
    const connection = createConnection((): Promise<never> => {
      throw new Error('at once');
    });
    await expect(connection.output()).rejects.toThrow('at once');
  });

  test('that nobody looks at is not unhandled', async () => {
    const connection = createConnection(() => Promise.reject(new Error('unseen')));
    await connection.done;
  });
});

describe('abort', () => {
  const waitForAbort = ({ signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  test('reaches the action at once; what it throws then is CANCELLED', async () => {
    const connection = createConnection(waitForAbort);
    const output = connection.output();
    await tick();
    connection.abort('not interested');
    await expect(output).rejects.toMatchObject({ status: 'CANCELLED', cause: 'not interested' });
    await expect(collect(connection.receive())).rejects.toMatchObject({ status: 'CANCELLED' });
    await connection.done;
  });

  test('before the action has begun keeps it from beginning', async () => {
    let ran = false;
    const connection = createConnection(async () => {
      ran = true;
    });
    connection.abort();
    await expect(connection.output()).rejects.toMatchObject({ status: 'CANCELLED' });
    expect(ran).toBe(false);
  });

  test('comes from the given signal as well, also from one that is aborted already', async () => {
    const abort = new AbortController();
    const connection = createConnection(waitForAbort, { signal: abort.signal });
    await tick();
    abort.abort();
    await expect(connection.output()).rejects.toMatchObject({ status: 'CANCELLED' });
    let ran = false;
    const late = createConnection(
      async () => {
        ran = true;
      },
      { signal: abort.signal },
    );
    await expect(late.output()).rejects.toMatchObject({ status: 'CANCELLED' });
    await expect(late.send(1 as never)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await late.done;
    expect(ran).toBe(false);
  });

  test('a result that the action still comes to stands', async () => {
    const connection = createConnection(async ({ inputs, signal }: ConnectionIo<number, never>) => {
      const seen: number[] = [];
      for await (const input of inputs) seen.push(input);
      return { seen, stopped: signal.aborted };
    });
    await connection.send(1);
    await tick();
    const output = connection.output();
    connection.abort();
    expect(await output).toEqual({ seen: [1], stopped: true });
    expect(await collect(connection.receive())).toEqual([]);
  });

  test('a settled output wins over a concurrent cancel', async () => {
    const go = Promise.withResolvers<string>();
    const abort = new AbortController();
    const connection = createConnection(() => go.promise, { signal: abort.signal });
    await tick();
    go.resolve('done');
    abort.abort();
    connection.abort();
    expect(await connection.output()).toBe('done');
    connection.abort();
    expect(await connection.output()).toBe('done');
  });

  test('a send from inside is dropped afterwards and returns at once, as does one that waits', async () => {
    const log: string[] = [];
    const connection = createConnection(
      async ({ send, signal }: ConnectionIo<never, number>) => {
        await send(1);
        await send(2);
        log.push(`after the waiting send, aborted: ${signal.aborted}`);
        for (let n = 0; n < 100; n++) await send(n);
        return 'ended';
      },
      { capacity: 1 },
    );
    await tick();
    expect(log).toEqual([]);
    connection.abort();
    expect(await connection.output()).toBe('ended');
    expect(log).toEqual(['after the waiting send, aborted: true']);
    expect(await collect(connection.receive())).toEqual([1]);
  });

  test('inputs that were queued are not begun', async () => {
    const begun: number[] = [];
    const go = Promise.withResolvers<void>();
    const connection = createConnection(async ({ inputs }: ConnectionIo<number, never>) => {
      for await (const input of inputs) {
        begun.push(input);
        await go.promise;
      }
    });
    for (const input of [1, 2, 3]) await connection.send(input);
    await tick();
    connection.abort();
    await expect(connection.send(4)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    go.resolve();
    await connection.output();
    expect(begun).toEqual([1]);
  });

  test('an action that does not listen is left behind after the grace', async () => {
    const graceOver = Promise.withResolvers<void>();
    const slept: number[] = [];
    const clock: Clock = {
      ...systemClock,
      sleep: (ms) => {
        slept.push(ms);
        return graceOver.promise;
      },
    };
    const stuck = Promise.withResolvers<string>();
    const connection = createConnection(() => stuck.promise, { clock, graceMs: 70 });
    await tick();
    connection.abort();
    const output = connection.output();
    expect(await isPending(output)).toBe(true);
    expect(slept).toEqual([70]);
    graceOver.resolve();
    await expect(output).rejects.toMatchObject({ status: 'CANCELLED' });
    await connection.done;
    stuck.resolve('too late');
    await expect(connection.output()).rejects.toMatchObject({ status: 'CANCELLED' });
  });

  test('leaves no listener on the given signal when the action ends', async () => {
    const { signal } = new AbortController();
    const { getEventListeners } = process.getBuiltinModule('node:events');
    const connection = createConnection(doubling, { signal });
    await connection.send(1);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await connection.output();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
