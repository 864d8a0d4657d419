import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Channel, createChannel, waitingIn } from './channel.ts';

const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  let done = false;
  promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  await new Promise((resolve) => setImmediate(resolve));
  return done;
};

async function collect<T>(channel: Channel<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of channel) values.push(value);
  return values;
}

describe('sending', () => {
  test('waits when the channel is full, until somebody receives', async () => {
    const channel = createChannel<number>({ capacity: 2 });
    await channel.send(1);
    await channel.send(2);
    const third = channel.send(3);
    expect(await settled(third)).toBe(false);
    expect(channel.size).toBe(3);
    expect(await channel.receive()).toEqual({ value: 1, done: false });
    await third;
    expect(channel.size).toBe(2);
  });

  test('with capacity 0 waits for the receiver', async () => {
    const channel = createChannel<number>({ capacity: 0 });
    const sent = channel.send(1);
    expect(await settled(sent)).toBe(false);
    expect(await channel.receive()).toEqual({ value: 1, done: false });
    await sent;
    const received = channel.receive();
    await channel.send(2);
    expect(await received).toEqual({ value: 2, done: false });
  });

  test('trySend never waits', async () => {
    const channel = createChannel<number>({ capacity: 1 });
    expect([channel.trySend(1), channel.trySend(2)]).toEqual([true, false]);
    await channel.receive();
    expect(channel.trySend(3)).toBe(true);
    channel.close();
    await channel.receive();
    expect(channel.trySend(4)).toBe(false);
  });

  test('push takes its place in line also in a full channel', async () => {
    const channel = createChannel<number>({ capacity: 1 });
    channel.push(1);
    const sent = channel.send(2);
    channel.push(3);
    channel.close();
    channel.push(4);
    const received: number[] = [];
    for await (const value of channel) received.push(value);
    expect(received).toEqual([1, 2, 3]);
    await sent;
  });

  test('what waits can be taken at once, and whoever waited for room goes on', async () => {
    const waited: Promise<void>[] = [];
    const channel = createChannel<number>({ capacity: 2, onWait: (sent) => waited.push(sent) });
    expect(waitingIn(channel)).toEqual([]);
    const sent = [1, 2, 3, 4].map((value) => channel.send(value));
    expect(waited).toHaveLength(2);
    expect(waitingIn(channel)).toEqual([1, 2, 3, 4]);
    await Promise.all([...sent, ...waited]);
    expect(channel.size).toBe(0);
    channel.trySend(5);
    expect(await channel.receive()).toEqual({ value: 5, done: false });
  });

  test('on a closed channel is refused at once', async () => {
    const channel = createChannel<number>();
    channel.close();
    await expect(channel.send(1)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  });

  test('a capacity below 0 is refused', () => {
    expect(() => createChannel({ capacity: -1 })).toThrow('0 or more');
    expect(() => createChannel({ capacity: Number.NaN })).toThrow('0 or more');
  });
});

describe('iterating', () => {
  test('leaving a loop early leaves the channel open, and the next loop goes on with the next value', async () => {
    const channel = createChannel<number>();
    for (const value of [1, 2, 3]) channel.trySend(value);
    for await (const value of channel) {
      expect(value).toBe(1);
      break;
    }
    expect(channel.closed).toBe(false);
    await channel.send(4);
    channel.close();
    expect(await collect(channel)).toEqual([2, 3, 4]);
  });

  test('a value sent after a loop was left goes to the next one', async () => {
    const channel = createChannel<number>({ capacity: 0 });
    const sending = (async () => {
      for (const value of [1, 2, 3]) await channel.send(value);
      channel.close();
    })();
    for await (const _ of channel) break;
    expect(await collect(channel)).toEqual([2, 3]);
    await sending;
  });
});

describe('ending', () => {
  test('close delivers what was sent before, waiting sends included', async () => {
    const channel = createChannel<number>({ capacity: 1 });
    const sends = [1, 2, 3].map((value) => channel.send(value));
    channel.close();
    expect(await collect(channel)).toEqual([1, 2, 3]);
    await Promise.all(sends);
    expect(await channel.receive()).toEqual({ value: undefined, done: true });
  });

  test('close ends waiting receivers', async () => {
    const channel = createChannel<number>();
    const waiting = [channel.receive(), channel.receive()];
    channel.close();
    channel.close();
    expect((await Promise.all(waiting)).map(({ done }) => done)).toEqual([true, true]);
  });

  test('fail gives buffered values first, then the error, to everybody', async () => {
    const channel = createChannel<number>({ capacity: 1 });
    const failure = new Error('broken');
    await channel.send(1);
    const waiting = channel.send(2);
    channel.fail(failure);
    await expect(waiting).rejects.toBe(failure);
    await expect(channel.send(3)).rejects.toBe(failure);
    expect(await channel.receive()).toEqual({ value: 1, done: false });
    await expect(channel.receive()).rejects.toBe(failure);
    await expect(collect(channel)).rejects.toBe(failure);
  });

  test('fail rejects waiting receivers, and the first error stands', async () => {
    const channel = createChannel<number>();
    const waiting = channel.receive();
    channel.fail(undefined);
    channel.fail(new Error('second'));
    await expect(waiting).rejects.toBe(undefined);
    await expect(channel.receive()).rejects.toBe(undefined);
  });

  test('fail after close still ends the sends that wait', async () => {
    const channel = createChannel<number>({ capacity: 0 });
    const waiting = channel.send(1);
    channel.close();
    channel.fail(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
  });

  test('unbound lets all waiting sends in', async () => {
    const channel = createChannel<number>({ capacity: 0 });
    const sends = [1, 2, 3].map((value) => channel.send(value));
    channel.unbound();
    await Promise.all(sends);
    await channel.send(4);
    channel.close();
    expect(await collect(channel)).toEqual([1, 2, 3, 4]);
  });
});

describe('signals', () => {
  test('end a waiting send, whose value is then never received', async () => {
    const channel = createChannel<number>({ capacity: 0 });
    const abort = new AbortController();
    const first = channel.send(1, abort.signal);
    const second = channel.send(2);
    abort.abort();
    await expect(first).rejects.toMatchObject({ status: 'CANCELLED' });
    expect(await channel.receive()).toEqual({ value: 2, done: false });
    await second;
  });

  test('end a waiting receive, which then takes no value', async () => {
    const channel = createChannel<number>();
    const abort = new AbortController();
    const first = channel.receive(abort.signal);
    const second = channel.receive();
    abort.abort(new DOMException('late', 'TimeoutError'));
    await expect(first).rejects.toMatchObject({ status: 'DEADLINE_EXCEEDED' });
    await channel.send(1);
    expect(await second).toEqual({ value: 1, done: false });
    await expect(channel.receive(abort.signal)).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
    });
    await expect(channel.send(2, abort.signal)).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
    });
  });
});

type Step = {
  readonly kind: 'send' | 'receive' | 'abortSend' | 'abortReceive';
  readonly tick: boolean;
};

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('send', 'send', 'receive', 'receive', 'abortSend', 'abortReceive'),
    tick: fc.boolean(),
  }),
  { maxLength: 60 },
);

test('whatever the order of sends, receives and aborts: first in first out, nothing lost or doubled, nobody left waiting', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 4 }), steps, async (capacity, plan) => {
      const channel = createChannel<number>({ capacity });
      const abortable: Record<'send' | 'receive', AbortController[]> = { send: [], receive: [] };
      const accepted: number[] = [];
      const received: number[] = [];
      const waits: Promise<void>[] = [];
      let next = 0;
      for (const { kind, tick } of plan) {
        if (kind === 'abortSend' || kind === 'abortReceive') {
          abortable[kind === 'abortSend' ? 'send' : 'receive'].pop()?.abort();
        } else {
          const abort = new AbortController();
          abortable[kind].push(abort);
          const value = next++;
          const wait =
            kind === 'send'
              ? channel.send(value, abort.signal).then(() => void accepted.push(value))
              : channel.receive(abort.signal).then((result) => {
                  if (!result.done) received.push(result.value);
                });
          waits.push(wait.catch(() => {}));
        }
        if (tick) await null;
      }
      channel.close();
      received.push(...(await collect(channel)));
      await Promise.all(waits);
      expect(received).toEqual(received.toSorted((a, b) => a - b));
      expect(received).toEqual(accepted.toSorted((a, b) => a - b));
    }),
    { numRuns: 500 },
  );
});

test('many values through a small channel between many senders and receivers', async () => {
  const channel = createChannel<readonly [sender: number, value: number]>({ capacity: 3 });
  const senders = [0, 1, 2, 3].map(async (sender) => {
    for (let value = 0; value < 2000; value++) await channel.send([sender, value]);
  });
  const received: (readonly [number, number])[][] = [[], [], []];
  const receivers = received.map(async (mine) => {
    for await (const value of channel) mine.push(value);
  });
  await Promise.all(senders);
  channel.close();
  await Promise.all(receivers);
  expect(received.flat()).toHaveLength(8000);
  for (const mine of received) {
    for (const sender of [0, 1, 2, 3]) {
      const values = mine.filter(([from]) => from === sender).map(([, value]) => value);
      expect(values).toEqual(values.toSorted((a, b) => a - b));
    }
  }
});

test('a long queue is emptied in order', async () => {
  const channel = createChannel<number>({ capacity: Number.POSITIVE_INFINITY });
  for (let value = 0; value < 5000; value++) channel.trySend(value);
  for (let value = 0; value < 3000; value++) expect((await channel.receive()).value).toBe(value);
  for (let value = 5000; value < 6000; value++) channel.trySend(value);
  channel.close();
  expect(await collect(channel)).toEqual(Array.from({ length: 3000 }, (_, at) => at + 3000));
});
