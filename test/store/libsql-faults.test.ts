import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { libsqlStore } from '../../src/store/libsql/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { eventually } from '../support/eventually.ts';
import { libsqlFolder } from '../support/libsql.ts';
import { openRaw } from '../support/raw-sqlite.ts';
import { createTurns, plainTurn, type Turns } from '../support/store-workload.ts';

let folder: Awaited<ReturnType<typeof libsqlFolder>>;
let path: string;
beforeEach(async () => {
  folder = await libsqlFolder();
  path = join(folder.folder, 'store.db');
});
afterEach(() => folder.remove());

async function filled(): Promise<Turns> {
  const store = libsqlStore({ url: folder.url });
  const turns = createTurns(store);
  await turns.take(5, plainTurn);
  await store.close?.();
  return turns;
}

async function lengthOf({ scope, sessionId }: Turns): Promise<number | undefined> {
  const store = libsqlStore({ url: folder.url });
  const read = await store.getSnapshot(scope, { sessionId });
  await store.close?.();
  return read?.state?.messages?.length;
}

function change(sql: string): void {
  const db = openRaw(path);
  db.exec(sql);
  db.close();
}

test.each([
  [{ url: undefined }, /`url` or a `client`/],
  [{ url: '' }, /`url` or a `client`/],
  [{ client: {} }, /`url` or a `client`/],
  [{ url: 'file:x.db', authtoken: 'x' }, /Did you mean "authToken"/],
])('options that cannot be right: %o', (options, message) => {
  expect(() => libsqlStore(options as never)).toThrow(message);
});

describe('a file that cannot be used', () => {
  test('of a newer format says what to do, and is left as it is', async () => {
    const turns = await filled();
    change('UPDATE meta SET format = format + 98');
    const before = await readFile(path);
    await expect(libsqlStore({ url: folder.url }).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format \d+.*Update waymark/),
    });
    expect(before.equals(await readFile(path))).toBe(true);
    change('UPDATE meta SET format = format - 98');
    expect(await lengthOf(turns)).toBe(10);
  });

  test('of another program is not touched', async () => {
    change('CREATE TABLE invoices(no INTEGER)');
    await expect(libsqlStore({ url: folder.url }).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('invoices'),
    });
  });

  test('of sqliteStore, whose checksums it cannot write, and the other way round', async () => {
    const other = sqliteStore(path);
    await other.open?.();
    await other.close?.();
    await expect(libsqlStore({ url: folder.url }).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('was made by `sqliteStore`'),
    });
    await folder.remove();
    folder = await libsqlFolder();
    path = join(folder.folder, 'store.db');
    await filled();
    await expect(sqliteStore(path).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('without checksums'),
    });
  });

  test('that is no database', async () => {
    await writeFile(path, 'Dear diary, '.repeat(1000));
    await expect(libsqlStore({ url: folder.url }).open?.()).rejects.toMatchObject({
      status: 'DATA_LOSS',
    });
  });

  test('in a folder that is not there', async () => {
    const url = `file:${join(folder.folder, 'missing', 'store.db')}`;
    await expect(libsqlStore({ url }).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('folder'),
    });
  });

  test('that is damaged: verify says so', async () => {
    await filled();
    change('PRAGMA wal_checkpoint(TRUNCATE)');
    const file = await readFile(path);
    const page = openRaw(path);
    const root = page.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'sessions_updated'`);
    const at = (Number(root.get()?.rootpage) - 1) * 4096;
    page.close();
    await writeFile(path, file.fill(0, at + 100, at + 4096));
    const store = libsqlStore({ url: folder.url });
    expect((await store.maintenance?.verify())?.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/database is damaged/),
    );
    await store.close?.();
  });

  test('that another process has locked: a write waits for it', async () => {
    const turns = await filled();
    const other = openRaw(path);
    other.exec('BEGIN IMMEDIATE');
    const store = libsqlStore({ url: folder.url });
    const title = 'renamed';
    const renamed = store.timeline?.updateSession(turns.scope, turns.sessionId, { title });
    const first = await Promise.race([renamed, Promise.resolve('waits')]);
    expect(first).toBe('waits');
    other.exec('COMMIT');
    other.close();
    await renamed;
    const session = await store.timeline?.getSession(turns.scope, turns.sessionId);
    expect(session?.title).toBe(title);
    await store.close?.();
  });
});

describe('a server that cannot be used', () => {
  const answering = async (status: number) => {
    const server = createServer((_, response) => response.writeHead(status).end('{}'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}?authToken=secret`, close: () => server.close() };
  };

  test.each([
    [401, 'PERMISSION_DENIED'],
    [500, 'UNAVAILABLE'],
  ])('answers with %d', async (status, expected) => {
    const { url, close } = await answering(status);
    const error = await libsqlStore({ url })
      .open?.()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: expected });
    expect(String(error)).not.toContain('secret');
    close();
  });

  test('is away', async () => {
    const { url, close } = await answering(200);
    close();
    await expect(libsqlStore({ url }).open?.()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });
});

test('a client of the caller has any number of connections, and stays open', async () => {
  const client = createClient({ url: 'file::memory:' });
  const store = libsqlStore({ client });
  const turns = createTurns(store);
  await Promise.all([turns.take(3, plainTurn), store.maintenance?.verify()]);
  await store.close?.();
  expect((await client.execute('SELECT COUNT(*) AS n FROM snapshots')).rows[0]?.n).toBe(3);
  client.close();
});

test('on a server, times are those of the database', async () => {
  // The same file, but the store takes its client for that of a server. Clocks of its processes may be wrong.
  const file = createClient({ url: folder.url });
  const client = Object.assign(file, { protocol: 'http' });
  const wrong = { ...systemClock, now: () => 7 };
  const store = libsqlStore({ client, clock: wrong });
  const turns = createTurns(store);
  await turns.take(3, plainTurn);
  const { items = [] } = (await store.timeline?.listSnapshots(turns.scope, turns.sessionId)) ?? {};
  const times = items.map(({ createdAt }) => Date.parse(createdAt));
  expect(times).toHaveLength(3);
  expect(Math.min(...times)).toBeGreaterThan(Date.parse('2001-01-01'));
  await store.close?.();
  client.close();
});

test('on a server, a run that has expired is taken over', async () => {
  const file = createClient({ url: folder.url });
  const client = Object.assign(file, { protocol: 'http' });
  const store = libsqlStore({ client });
  const scope = { agent: 'a' };
  const runId = createIds(systemClock)();
  const request = { runId, sessionId: 's', from: 'head', mode: 'accepted', inputs: [] } as const;
  await store.runs?.claim(scope, { ...request, ttl: 1, worker: 'one' });
  await eventually(async () => {
    const other = { agents: ['a'], worker: 'two', ttl: 60_000, limit: 1 };
    const taken = await store.runs?.takeOver(other);
    expect(taken).toMatchObject([{ claim: { runId, attempt: 2 } }]);
  });
  await store.close?.();
  client.close();
});
