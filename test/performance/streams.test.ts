import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type AppOptions, memoryStore, waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';
import { serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import type { EventSupport } from 'waymark/store';
import { fakeClock } from 'waymark/testing';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/postgres.ts';

// What a token of a stream costs at the speed of a real model, counted instead of timed: many streams, a token of each at a time.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-streams-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const streams = 20;

/** So long events are collected before they are written. */
const flushMs = 25;

test('events of all runs are one transaction on SQLite, at any length of the runs', async () => {
  const begun = countBegins();
  const names: string[] = [];
  const store = sqliteStore(join(directory, 'streams.db'), { onQuery: (name) => names.push(name) });
  const paced = await startRuns(store);
  const flush = async (): Promise<object> => {
    const before = begun.count;
    names.length = 0;
    await paced.flush();
    return { transactions: begun.count - before, statements: names.length };
  };
  await paced.emit(3);
  await paced.flush();
  await paced.emit(3);
  const first = await flush();
  for (let round = 0; round < 50; round++) {
    await paced.emit(3);
    await paced.flush();
  }
  await paced.emit(3);
  expect(await flush()).toEqual(first);
  expect(first).toEqual({ transactions: 1, statements: streams });
  begun.stop();
  await paced.end();
});

test('events of all runs are one statement on Postgres, which reads one row of each run', async () => {
  const postgres = await startPostgres();
  const pool = new Pool({ connectionString: postgres.connectionString, max: 1 });
  try {
    const names: string[] = [];
    const store = postgresStore({ pool, schema: 'streams', onQuery: (name) => names.push(name) });
    const paced = await startRuns(store);
    const flush = async (): Promise<object> => {
      const before = await rowsRead(pool);
      names.length = 0;
      await paced.flush();
      const statements = [...names];
      return { statements, rows: (await rowsRead(pool)) - before };
    };
    for (let round = 0; round < 2; round++) {
      await paced.emit(3);
      await paced.flush();
    }
    await paced.emit(3);
    const first = await flush();
    for (let round = 0; round < 50; round++) {
      await paced.emit(3);
      await paced.flush();
    }
    await paced.emit(3);
    expect(await flush()).toEqual(first);
    expect(first).toEqual({ statements: ['append'], rows: streams });
    await paced.end();
  } finally {
    await pool.end();
    await postgres.stop();
  }
});

test('a token of a served stream is encoded once and sent at once, with one immediate for all streams', async () => {
  const paced = definePaced(memoryStore());
  const server = await serve(paced.app, { port: 0, log: () => {} });
  const sockets = await Promise.all(Array.from({ length: streams }, () => ask(server.port)));
  await paced.running();
  await paced.emit(20);
  const rounds = 50;
  const counted = await countAsync(async () => {
    for (let round = 0; round < rounds; round++) await paced.emit(1);
  });
  const perToken = (count: number): number => count / (rounds * streams);
  // One for all streams in a turn of the event loop, and the one by which this test waits.
  expect(counted.immediates / rounds).toBeLessThanOrEqual(4);
  expect(counted.timers).toBe(0);
  expect(perToken(counted.encodings)).toBeLessThanOrEqual(1.1);
  // Of the model's own loop, the cursor, and the two generators between it and the response.
  expect(perToken(counted.promises)).toBeLessThanOrEqual(16);
  for (const socket of sockets) socket.destroy();
  await paced.end();
  await server.close();
});

/** An agent whose model emits tokens when the test says so. */
function definePaced(store: NonNullable<AppOptions['store']>) {
  const clock = fakeClock(Date.now());
  const writing = new Set<Promise<void>>();
  const { events } = store as { readonly events: EventSupport };
  const append = events.append.bind(events);
  events.append = (run, added) => {
    const written = append(run, added);
    writing.add(written);
    return written;
  };
  const app = waymark({ store, clock, work: false });
  const models = new Set<() => unknown>();
  const done = Promise.withResolvers<void>();
  app.defineModel({ name: 'paced' }, async (_, { stream }) => {
    models.add(() => stream({ content: [{ text: 'a token of text. ' }] }));
    await done.promise;
    return { message: { role: 'model', content: [{ text: 'done' }] }, finishReason: 'stop' };
  });
  const agent = app.defineAgent({ name: 'paced', model: 'paced' });
  return {
    app,
    agent,
    running: () => eventually(() => expect(models.size).toBe(streams)),
    /** Each model emits so many tokens, one in a turn of the event loop. */
    async emit(tokens: number): Promise<void> {
      for (let token = 0; token < tokens; token++) {
        for (const emit of models) emit();
        for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
      }
    },
    /** Lets the events that wait be written. */
    async flush(): Promise<void> {
      await clock.advance(flushMs);
      await Promise.all(writing);
      writing.clear();
    },
    async end(): Promise<void> {
      done.resolve();
      await app.close();
    },
  };
}

/** Starts accepted runs of such an agent, without a server. */
async function startRuns(store: NonNullable<AppOptions['store']>) {
  const paced = definePaced(store);
  const turns = Array.from({ length: streams }, () => paced.agent.runText('hi', { accept: true }));
  await paced.running();
  return {
    ...paced,
    async end(): Promise<void> {
      const ended = Promise.all(turns);
      await paced.end();
      await ended;
      await store.close?.();
    },
  };
}

async function ask(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const body = JSON.stringify({ input: { message: { role: 'user', content: [{ text: 'hi' }] } } });
  socket.resume();
  socket.write(
    `POST /agents/paced/turns HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

/** Counts the write transactions of all SQLite stores. */
function countBegins(): { readonly count: number; stop(): void } {
  const { prepare } = DatabaseSync.prototype;
  const counted = { count: 0, stop: () => Object.assign(DatabaseSync.prototype, { prepare }) };
  DatabaseSync.prototype.prepare = function (...args) {
    const made = prepare.apply(this, args);
    if (args[0] !== 'BEGIN IMMEDIATE') return made;
    const run = made.run.bind(made);
    made.run = () => {
      counted.count++;
      return run();
    };
    return made;
  };
  return counted;
}

/** Rows of events that the statements of this connection have read so far. */
async function rowsRead(pool: Pool): Promise<number> {
  await pool.query('SELECT pg_stat_force_next_flush()');
  const { rows } = await pool.query(
    `SELECT seq_tup_read + idx_tup_fetch AS rows FROM pg_stat_user_tables
     WHERE schemaname = 'streams' AND relname = 'journal'`,
  );
  return Number(rows[0].rows);
}

async function countAsync(work: () => Promise<void>) {
  const counted = { promises: 0, immediates: 0, timers: 0, encodings: 0 };
  const { stringify } = JSON;
  const hook = createHook({
    init(_, type) {
      if (type === 'PROMISE') counted.promises++;
      else if (type === 'Immediate') counted.immediates++;
      else if (type === 'Timeout') counted.timers++;
    },
  });
  Object.assign(JSON, {
    stringify(...args: Parameters<typeof stringify>) {
      counted.encodings++;
      return stringify(...args);
    },
  });
  hook.enable();
  try {
    await work();
  } finally {
    hook.disable();
    Object.assign(JSON, { stringify });
  }
  return counted;
}
