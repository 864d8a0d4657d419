import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-sqlite.ts';
import { createTurns, plainTurn, type Turns } from '../support/store-workload.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-faults-'));
  path = join(folder, 'store.db');
});
afterEach(() => rm(folder, { recursive: true }));

/** A file that holds a session of some turns. */
async function filled(turnCount = 5): Promise<Turns> {
  const store = sqliteStore(path);
  await store.open?.();
  const turns = createTurns(store);
  await turns.take(turnCount, plainTurn);
  await store.close?.();
  return turns;
}

function change(sql: string): void {
  const db = openRaw(path);
  db.exec(sql);
  db.close();
}

async function lengthOf({ scope, sessionId }: Turns): Promise<number | undefined> {
  const store = sqliteStore(path);
  try {
    const read = await store.getSnapshot(scope, { sessionId });
    return read?.state?.messages?.length;
  } finally {
    await store.close?.();
  }
}

test('a file that was rebuilt without auto_vacuum: sessions are deleted, and its free pages stay', async () => {
  const { scope, sessionId } = await filled(20);
  change('PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM');
  const store = sqliteStore(path);
  expect(await store.timeline?.deleteSession(scope, sessionId)).toBe(true);
  await store.close?.();
  const db = openRaw(path);
  expect(db.prepare('PRAGMA freelist_count').get()?.freelist_count).toBeGreaterThan(0);
  db.close();
  expect(await lengthOf(await filled())).toBe(10);
});

describe('a file that cannot be used', () => {
  test('of a newer format says what to do, and is left as it is', async () => {
    const turns = await filled();
    change('UPDATE meta SET format = format + 98');
    const before = await readFile(path);
    await expect(sqliteStore(path).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format \d+.*Update waymark/),
    });
    expect(before.equals(await readFile(path))).toBe(true);
    change('UPDATE meta SET format = format - 98');
    expect(await lengthOf(turns)).toBe(10);
  });

  test('of another program is not touched', async () => {
    change('CREATE TABLE invoices(no INTEGER)');
    const store = sqliteStore(path);
    await expect(store.open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('invoices'),
    });
  });

  test('S235: of another program is not touched, also when it has a table of the same name', async () => {
    for (const table of ['meta(format INTEGER)', 'meta(format INTEGER, id TEXT, sealed TEXT)']) {
      await rm(path, { force: true });
      change(
        `CREATE TABLE ${table}; INSERT INTO meta(format) VALUES(1); PRAGMA application_id = 7`,
      );
      const store = sqliteStore(path);
      await expect(store.open?.()).rejects.toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringContaining('another program'),
      });
    }
  });

  test('that is no database', async () => {
    await writeFile(path, 'Dear diary, '.repeat(1000));
    await expect(sqliteStore(path).open?.()).rejects.toMatchObject({ status: 'DATA_LOSS' });
  });

  test('in a folder that is not there', async () => {
    const store = sqliteStore(join(folder, 'missing', 'store.db'));
    await expect(store.open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('folder'),
    });
  });

  test('that is read-only can be read, and a write says so', async () => {
    const turns = await filled();
    const url = pathToFileURL(path);
    url.searchParams.set('mode', 'ro');
    const store = sqliteStore(url);
    const opened = store.open?.().then(() => createTurns(store).take(1, plainTurn));
    await expect(opened).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('read-only'),
    });
    await store.close?.();
    expect(await lengthOf(turns)).toBe(10);
  });

  test('that is damaged gives DATA_LOSS and nothing wrong', async () => {
    const turns = await filled(200);
    const file = await open(path, 'r+');
    const { size } = await file.stat();
    for (let at = size / 2; at < size; at += 4096) await file.write('x'.repeat(2000), at);
    await file.close();
    const store = sqliteStore(path);
    const lookup = { sessionId: turns.sessionId };
    await expect(store.getSnapshot(turns.scope, lookup)).rejects.toMatchObject({
      status: 'DATA_LOSS',
    });
    await store.close?.();
  });

  test('a message that was changed by hand does not fit its hash, and verify says which snapshot', async () => {
    const turns = await filled(3);
    change(`UPDATE messages SET body = replace(body, '1 ', '9 ') WHERE body LIKE '%"user"%"1 %'`);
    const store = sqliteStore(path);
    const lookup = { sessionId: turns.sessionId };
    const read = store.runs?.load(turns.scope, lookup);
    await expect(read).rejects.toMatchObject({ status: 'DATA_LOSS' });
    const faults = await store.maintenance?.verify();
    expect(faults?.map(({ kind, sessionId }) => [kind, sessionId])).toEqual([
      ['hash', turns.sessionId],
      ['hash', turns.sessionId],
    ]);
    await store.close?.();
  });

  test('verify finds rows that nothing holds', async () => {
    await filled(3);
    change(`INSERT INTO messages VALUES(99 * 4194304, '{}')`);
    change(`INSERT INTO blobs(hash, body) VALUES(x'00', '{}')`);
    change('UPDATE snapshots SET parent = 77 WHERE idx = 2');
    const store = sqliteStore(path);
    const faults = await store.maintenance?.verify();
    expect(faults?.map(({ kind }) => kind).sort()).toEqual([
      'hash',
      'parent',
      'unreachable',
      'unreachable',
    ]);
    await store.close?.();
  });
});

// The snapshots of a long one are read in several statements.
test.each([3, 2100])(
  'verify finds messages of a session of %d turns that no snapshot has',
  async (turnCount) => {
    const { scope, sessionId } = await filled(turnCount);
    const store = sqliteStore(path);
    expect(await store.maintenance?.verify()).toEqual([]);
    change(`INSERT INTO messages SELECT MAX(id) + 9, body FROM messages`);
    const messages = [expect.stringMatching(/^1 messages of branch \d+ are held by nothing/)];
    const faults = await store.maintenance?.verify();
    expect(faults?.map(({ message }) => message)).toEqual(messages);
    const head = await store.getSnapshot(scope, { sessionId });
    expect(head?.state?.messages).toHaveLength(2 * turnCount);
    await store.close?.();
  },
);

describe('a disk that is full', () => {
  test('a turn says so, nothing of it is kept, and what was there still is', async () => {
    const store = sqliteStore(path, { maxSize: 360_000 });
    await store.open?.();
    const turns = createTurns(store);
    const fill = turns.take(5000, plainTurn);
    await expect(fill).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    const taken = turns.times.length;
    expect(taken).toBeGreaterThan(20);
    const { scope, sessionId } = turns;
    const read = await store.getSnapshot(scope, { sessionId });
    expect(read?.state?.messages).toHaveLength(2 * taken);
    await store.close?.();
    const again = sqliteStore(path);
    expect(await again.maintenance?.verify()).toEqual([]);
    await again.close?.();
  });
});

describe('another process in the way', () => {
  test('is waited for with the thread free', async () => {
    await filled();
    const store = sqliteStore(path);
    await store.open?.();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    let isDone = false;
    const turn = createTurns(store)
      .take(1, plainTurn)
      .finally(() => {
        isDone = true;
      });
    // With the thread blocked, no timer would fire before the turn has given up.
    let ticks = 0;
    await eventually(() => ++ticks >= 50);
    expect(isDone).toBe(false);
    other.exec('COMMIT');
    await turn;
    other.close();
    await store.close?.();
  });
});

test('a plan that fails leaves no transaction open', async () => {
  const turns = await filled();
  const store = sqliteStore(path);
  const broken = store.saveSnapshot(turns.scope, turns.base()?.snapshotId ?? '', () => {
    throw new Error('from the mutator');
  });
  await expect(broken).rejects.toThrow('from the mutator');
  await createTurns(store).take(1, plainTurn);
  await store.close?.();
});

test('a store that was closed says so', async () => {
  const turns = await filled();
  const store = sqliteStore(path);
  await store.open?.();
  await store.close?.();
  const read = store.getSnapshot(turns.scope, { sessionId: turns.sessionId });
  await expect(read).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
});
