import fc from 'fast-check';
import { expect, test } from 'vitest';
import { letOthersRun } from '../../core/platform.ts';
import { systemClock } from '../../core/time.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventSupport, RunEvent } from '../../store/contract/store.ts';
import { CallerCursor, type EventBuffer } from './caller-cursor.ts';
import { EventFlusher, EventLog } from './event-log.ts';

const scope = { agent: 'a' };

function createLog(runId = 'run'): EventLog {
  return new EventLog({ runId, scope, attempt: 1, flusher: new EventFlusher(systemClock) });
}

const chunkOf = (value: number): Chunk => ({ status: value });

const statuses = (chunks: Iterable<{ readonly shown: Chunk | undefined }>) =>
  Array.from(chunks, ({ shown }) => shown?.status);

test('reads one log after the other, without the events that a transform hides', async () => {
  const cursor = new CallerCursor();
  const [first, second] = [createLog('1'), createLog('2')];
  cursor.follow(first.buffer);
  first.push(chunkOf(1), chunkOf(1));
  first.push(chunkOf(2), undefined);
  cursor.push({ attempt: 0, seq: 0, chunk: chunkOf(3), shown: chunkOf(3), kept: false });
  cursor.follow(second.buffer);
  second.push(chunkOf(4), chunkOf(4));
  // Belongs to a run that the caller no longer follows.
  first.push(chunkOf(5), chunkOf(5));
  expect((await cursor.next()).value?.status).toBe(1);
  expect(statuses(cursor.take())).toEqual([3, 4]);
  expect(cursor.hasNext).toBe(false);
  const waiting = cursor.next();
  second.push(chunkOf(6), undefined);
  second.push(chunkOf(7), chunkOf(7));
  expect((await waiting).value?.status).toBe(7);
});

test('a staged event is seen with its commit, before those that came meanwhile, and never when the commit fails', async () => {
  const cursor = new CallerCursor();
  const log = createLog();
  cursor.follow(log.buffer);
  await log.takeAlong(async () => {
    const staged = log.stage(chunkOf(1), chunkOf(1));
    log.push(chunkOf(2), chunkOf(2));
    expect(cursor.hasNext).toBe(false);
    log.publishStaged(staged);
  });
  expect(statuses(cursor.take())).toEqual([1, 2]);
  const failing = log.takeAlong(async () => {
    log.stage(chunkOf(3), chunkOf(3));
    log.push(chunkOf(4), chunkOf(4));
    throw new Error('not saved');
  });
  await expect(failing).rejects.toThrow('not saved');
  expect(statuses(cursor.take())).toEqual([4]);
});

test('a caller that is too far behind makes the turn wait until it has read, left, or asked for the output', async () => {
  const ends: ((cursor: CallerCursor) => void)[] = [
    (cursor) => cursor.take(),
    (cursor) => cursor.leave(),
    (cursor) => cursor.unbound(),
    (cursor) => cursor.fail(new Error('gone')),
    (cursor) => cursor.readFromStore(),
  ];
  for (const end of ends) {
    const waits: Promise<void>[] = [];
    const cursor = new CallerCursor({ onWait: (sent) => waits.push(sent) });
    const log = createLog();
    cursor.follow(log.buffer);
    while (!cursor.isFull) log.push(chunkOf(1), chunkOf(1));
    expect(log.buffer.end).toBe(193);
    let isDone = false;
    const room = cursor.room().then(() => {
      isDone = true;
    });
    expect(waits).toHaveLength(1);
    await Promise.resolve();
    expect(isDone).toBe(false);
    end(cursor);
    await room;
    expect(cursor.isFull).toBe(false);
  }
});

test('a wait for the caller ends with its signal', async () => {
  const cursor = new CallerCursor();
  const log = createLog();
  cursor.follow(log.buffer);
  while (!cursor.isFull) log.push(chunkOf(1), chunkOf(1));
  const stop = new AbortController();
  const room = cursor.room(stop.signal);
  stop.abort();
  await room;
  await cursor.room(stop.signal);
});

test('after close the rest can be read, but nothing that comes later', async () => {
  const cursor = new CallerCursor();
  const log = createLog();
  cursor.follow(log.buffer);
  log.push(chunkOf(1), chunkOf(1));
  cursor.close();
  log.push(chunkOf(2), chunkOf(2));
  const read: unknown[] = [];
  for await (const chunk of cursor) read.push(chunk.status);
  expect(read).toEqual([1]);
});

test('of a long turn nothing is dropped that a caller has to read from memory', () => {
  const cursor = new CallerCursor();
  const log = createLog();
  cursor.follow(log.buffer);
  cursor.unbound();
  for (let value = 0; value < 25_000; value++) log.push(chunkOf(value), chunkOf(value));
  expect(log.truncated).toBe(false);
  expect(cursor.take()).toHaveLength(25_000);
  log.push(chunkOf(1), chunkOf(1));
  expect(log.truncated).toBe(true);
});

test('a log that ends keeps little in memory for a caller that can read from the store', async () => {
  const long = { modelChunk: { content: [{ text: 'x'.repeat(64 * 1024) }] } };
  for (const [count, missing] of [
    [3, false],
    [5, true],
  ] as const) {
    const cursor = new CallerCursor();
    const log = createLog();
    cursor.follow(log.buffer);
    cursor.readFromStore();
    log.push(chunkOf(0), chunkOf(0));
    expect(cursor.take()).toHaveLength(1);
    for (let at = 0; at < count; at++) log.push(long, long);
    log.buffer.release();
    for (let turns = 0; turns < 3; turns++) await letOthersRun();
    expect(cursor.missedRun).toBe(missing ? 'run' : undefined);
    cursor.skipMissed();
    expect(cursor.hasNext).toBe(false);
  }
});

type Step =
  | { readonly kind: 'push' | 'commit' | 'hide' | 'nextRun' | 'trim' }
  | { readonly kind: 'take' | 'next' | 'reconnect'; readonly tick: boolean };

const steps = fc.array(
  fc.oneof(
    fc.record<Step>({
      kind: fc.constantFrom('push', 'push', 'push', 'commit', 'hide', 'nextRun', 'trim'),
    }),
    fc.record<Step>({
      kind: fc.constantFrom('take', 'next', 'reconnect'),
      tick: fc.boolean(),
    }),
  ),
  { maxLength: 80 },
);

test('whatever the order of events, reads, drops and reconnects: each event is seen once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), steps, async (isHeld, plan) => {
      const client = new Client(isHeld);
      const expected: number[] = [];
      let log = client.startRun('run 0');
      let value = 0;
      for (const [index, step] of plan.entries()) {
        switch (step.kind) {
          case 'push':
            expected.push(value);
            log.push(chunkOf(value), chunkOf(value));
            value++;
            break;
          case 'hide':
            log.push(chunkOf(value++), undefined);
            break;
          case 'commit': {
            const staged = value++;
            const during = value++;
            expected.push(staged, during);
            await log.takeAlong(async () => {
              const event = log.stage(chunkOf(staged), chunkOf(staged));
              log.push(chunkOf(during), chunkOf(during));
              log.publishStaged(event);
            });
            break;
          }
          case 'nextRun':
            log.end();
            log = client.startRun(`run ${index + 1}`);
            break;
          case 'trim':
            log.buffer.drop(log.buffer.end);
            break;
          case 'take':
            client.read();
            break;
          case 'next':
            await client.readOne();
            break;
          case 'reconnect':
            client.reconnect();
            break;
        }
        if ('tick' in step && step.tick) await null;
      }
      client.cursor.close();
      client.read();
      expect(client.seen).toEqual(expected);
    }),
    { numRuns: 1_000 },
  );
});

/** A client that reads through a cursor, and from the "store" what the memory has dropped. */
class Client {
  cursor: CallerCursor;
  readonly seen: number[] = [];
  readonly #stored = new Map<string, RunEvent[]>();
  readonly #isHeld: boolean;
  #buffer: EventBuffer | undefined;

  constructor(isHeld: boolean) {
    this.#isHeld = isHeld;
    this.cursor = this.#open();
  }

  startRun(runId: string): EventLog {
    const log = createLog(runId);
    const stored: RunEvent[] = [];
    this.#stored.set(runId, stored);
    let position = 0;
    // The store has each event before it can be dropped.
    log.buffer.onEvent(() => {
      for (; position < log.buffer.end; position++) {
        const event = log.buffer.at(position);
        if (event?.shown !== undefined) stored.push(event);
      }
    });
    this.#buffer = log.buffer;
    this.cursor.follow(log.buffer);
    return log;
  }

  read(): void {
    for (const { shown } of this.cursor.take()) this.#see(shown);
    const { missedRun } = this.cursor;
    if (missedRun === undefined) return;
    const last = this.seen.at(-1) ?? -1;
    for (const { chunk } of this.#stored.get(missedRun) ?? []) {
      if (Number(chunk.status) > last) this.#see(chunk);
    }
    this.cursor.skipMissed();
    this.read();
  }

  async readOne(): Promise<void> {
    if (this.cursor.missedRun !== undefined) this.read();
    if (!this.cursor.hasNext) return;
    this.#see((await this.cursor.next()).value);
  }

  /** Comes back at the end of what it has seen. */
  reconnect(): void {
    this.read();
    this.cursor.leave();
    expect(this.cursor.take()).toEqual([]);
    this.cursor = this.#open();
    if (this.#buffer !== undefined) this.cursor.follow(this.#buffer);
  }

  #open(): CallerCursor {
    const cursor = new CallerCursor();
    if (!this.#isHeld) cursor.readFromStore();
    return cursor;
  }

  #see(chunk: Chunk | undefined): void {
    if (typeof chunk?.status === 'number') this.seen.push(chunk.status);
  }
}

test('writes that fail are retried, and each event reaches the store once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 20 }), async (outcomes) => {
      const written: number[] = [];
      const ticks: (() => void)[] = [];
      const clock = {
        ...systemClock,
        every: (_: number, fn: () => void) => {
          ticks.push(fn);
          return () => void ticks.splice(ticks.indexOf(fn), 1);
        },
      };
      const results = [...outcomes];
      const events = {
        append: async (_: unknown, batch: readonly RunEvent[]) => {
          await null;
          if (results.shift() === false) throw new Error('away');
          written.push(...batch.map(({ seq }) => seq));
        },
      } as unknown as EventSupport;
      const log = new EventLog({
        runId: 'run',
        scope,
        attempt: 1,
        flusher: new EventFlusher(clock),
      });
      log.push(chunkOf(0), chunkOf(0));
      log.writeTo(events, { runId: 'run', attempt: 1 });
      for (let value = 1; value <= 20; value++) {
        log.push(chunkOf(value), chunkOf(value));
        for (const tick of [...ticks]) tick();
        if (value % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      for (let rounds = 0; !log.isStored && rounds < 50; rounds++) {
        for (const tick of [...ticks]) tick();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(written).toEqual(Array.from({ length: 21 }, (_, at) => at));
    }),
    { numRuns: 50 },
  );
});
