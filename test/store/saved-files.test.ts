import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { filePart } from '../../src/protocol/artifacts.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { backupFiles, fileStore, restoreFiles } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { backupSqlite, sqliteStore } from '../../src/store/sqlite/index.ts';
import { createKit, stateOf } from '../../src/testing/store-contract/kit.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const bytes = Uint8Array.from({ length: 700_000 }, (_, at) => (at * 31) % 251);
const hash = createHash('sha256').update(bytes).digest('hex');
const text = 'a text that stands in the file';
bytes.set(Buffer.from(text), 500_000);
const content = createHash('sha256').update(bytes).digest('hex');
const key = new Uint8Array(32).fill(3);

let folder = '';
let postgres: TestPostgres;
let schema = '';
let schemas = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-saved-files-'));
  schema = `saved_files_${schemas++}`;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const scope = { agent: 'maker', owner: 'ann' };
const place = { scope, sessionId: 's' };

/** A session with a file, in two snapshots. */
async function fill(store: Store, data: Uint8Array = bytes): Promise<void> {
  const kit = createKit({ store, close: async () => {} }, scope);
  const held = await kit.claim('s');
  const stored = await kit.files.write(
    { scope, run: held },
    (async function* () {
      yield data;
    })(),
  );
  const part = filePart({ ...stored, contentType: 'video/mp4' });
  const state = stateOf({ artifacts: [{ name: 'file', parts: [part] }] });
  await kit.commit(held, { state });
  await kit.turn('s', { state });
}

async function read(store: Store, name = content): Promise<Buffer> {
  const file = await store.files?.open(place, name);
  if (file === undefined) expect.fail('the file is not there');
  const pieces: Uint8Array[] = [];
  for await (const piece of file.read(0, file.size)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function expectDamage(store: Store): Promise<void> {
  const faults = (await store.maintenance?.verify()) ?? [];
  expect(faults.filter(({ kind }) => kind === 'hash')).toEqual([
    expect.objectContaining({ kind: 'hash', sessionId: 's' }),
    expect.objectContaining({ kind: 'hash', sessionId: 's' }),
  ]);
  await expect(read(store)).rejects.toMatchObject({ status: 'DATA_LOSS' });
  // The session itself can be read.
  expect((await store.getSnapshot(scope, { sessionId: 's' }))?.state?.artifacts).toHaveLength(1);
  await store.close?.();
}

function sqlite(sql: string, path: string): unknown {
  const db = new DatabaseSync(path);
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

async function query(sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  try {
    return await client.query(sql.replaceAll('@', `${schema}.`));
  } finally {
    await client.end();
  }
}

test.each([{}, { encryption: { key } }])(
  'S629: a flipped byte in SQLite is found, with %o',
  async (options) => {
    const path = join(folder, 'store.db');
    const store = sqliteStore(path, options);
    await fill(store);
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
    sqlite(
      `UPDATE blobs SET bytes = CAST(substr(bytes, 1, 1000) || x'00ff' || substr(bytes, 1003) AS BLOB)
       WHERE row_id = (SELECT MAX(row_id) FROM blobs WHERE bytes IS NOT NULL)`,
      path,
    );
    await expectDamage(sqliteStore(path, options));
  },
);

test('S629: a piece that is missing in SQLite is found', async () => {
  const path = join(folder, 'store.db');
  const store = sqliteStore(path);
  await fill(store);
  await store.close?.();
  sqlite(
    'DELETE FROM blobs WHERE row_id = (SELECT MIN(row_id) FROM blobs WHERE bytes IS NOT NULL)',
    path,
  );
  await expectDamage(sqliteStore(path));
});

test('S629: a flipped byte in Postgres is found', async () => {
  const open = () => postgresStore({ connectionString: postgres.connectionString, schema, max: 2 });
  const store = open();
  await fill(store);
  await store.close?.();
  await query(
    `UPDATE @blobs SET bytes = set_byte(bytes, 1000, 255 - get_byte(bytes, 1000))
     WHERE row_id = (SELECT MAX(row_id) FROM @blobs WHERE bytes IS NOT NULL)`,
  );
  await expectDamage(open());
});

test('S629: a flipped byte in the file store is found', async () => {
  const store = fileStore(join(folder, 'store'));
  await fill(store);
  await store.close?.();
  const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((each) =>
    each.endsWith(`${content}.bin`),
  );
  const path = join(folder, name ?? '');
  const damaged = readFileSync(path);
  damaged[1000] = 255 - (damaged[1000] ?? 0);
  writeFileSync(path, damaged);
  await expectDamage(fileStore(join(folder, 'store')));
});

test('S636: an encrypted store has neither the bytes nor the hash of a file, and turns its keys', async () => {
  const path = join(folder, 'store.db');
  const store = sqliteStore(path, { encryption: { key } });
  await fill(store);
  await store.close?.();
  const raw = readFileSync(path);
  for (const secret of [text, content, hash]) expect(raw.includes(secret)).toBe(false);
  expect(raw.includes(Buffer.from(content, 'hex'))).toBe(false);
  const next = new Uint8Array(32).fill(4);
  const rotating = sqliteStore(path, { encryption: { keys: [next, key] } });
  expect(await rotating.rotateKeys()).toBeGreaterThan(3);
  await rotating.close?.();
  const rotated = sqliteStore(path, { encryption: { key: next } });
  expect(await read(rotated)).toEqual(Buffer.from(bytes));
  expect(await rotated.maintenance?.verify()).toEqual([]);
  await rotated.close?.();
});

test('S627: the bytes of a deleted session are gone from the files', async () => {
  const path = join(folder, 'store.db');
  const store = sqliteStore(path);
  await fill(store);
  await store.timeline?.deleteSession(scope, 's');
  await store.close?.();
  expect(readFileSync(path).includes(text)).toBe(false);
  const files = fileStore(join(folder, 'store'));
  await fill(files);
  await files.timeline?.deleteSession(scope, 's');
  await files.close?.();
  const left = readdirSync(join(folder, 'store'), { recursive: true, encoding: 'utf8' });
  expect(left.filter((name) => name.endsWith('.bin'))).toEqual([]);
});

test('S627: equal content takes room once', async () => {
  const path = join(folder, 'store.db');
  const store = sqliteStore(path);
  await fill(store);
  const count = 'SELECT COUNT(*) AS count FROM blobs WHERE bytes IS NOT NULL';
  expect(sqlite(count, path)).toEqual([{ count: 3 }]);
  const kit = createKit({ store, close: async () => {} }, { agent: 'other' });
  const held = await kit.claim('t');
  await kit.files.write(
    { scope: kit.scope, run: held },
    (async function* () {
      yield bytes;
    })(),
  );
  expect(sqlite(count, path)).toEqual([{ count: 3 }]);
  await store.close?.();
});

test('S627: a backup has the files', async () => {
  const files = fileStore(join(folder, 'store'));
  await fill(files);
  await files.close?.();
  await backupFiles(join(folder, 'store'), join(folder, 'files-backup'));
  await restoreFiles(join(folder, 'files-backup'), join(folder, 'restored'));
  const restored = fileStore(join(folder, 'restored'));
  expect(await read(restored)).toEqual(Buffer.from(bytes));
  expect(await restored.maintenance?.verify()).toEqual([]);
  await restored.close?.();
  const database = sqliteStore(join(folder, 'a.db'));
  await fill(database);
  await backupSqlite(join(folder, 'a.db'), join(folder, 'b.db'));
  await database.close?.();
  const copy = sqliteStore(join(folder, 'b.db'));
  expect(await read(copy)).toEqual(Buffer.from(bytes));
  await copy.close?.();
});
