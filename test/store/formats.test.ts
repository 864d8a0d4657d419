import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { type SqlStore, sqliteStore } from '../../src/store/sqlite/index.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { openRaw } from '../support/raw-sqlite.ts';
import {
  expectedOf,
  fixture,
  fixtureKey,
  hasFixture,
  loadDump,
  unpackFiles,
  versions,
} from '../support/store-fixtures.ts';
import { lifeApp, lifeScopes, must } from '../support/store-life.ts';
import { readout } from '../support/store-readout.ts';

// The fixtures' runs ended long ago; their events are kept all the same.
const eventsTtl = 10 ** 14;

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-formats-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Puts a fixture in its place and gives the way to open it. */
type Unpack = (release: string) => Promise<() => Store>;

const kinds: Readonly<Record<string, Unpack>> = {
  sqlite: async (release) => {
    const path = join(folder, 'store.db');
    writeFileSync(path, fixture(release, 'sqlite.db'));
    return () => sqliteStore(path, { eventsTtl });
  },
  'sqlite-encrypted': async (release) => {
    const path = join(folder, 'store.db');
    writeFileSync(path, fixture(release, 'sqlite-encrypted.db'));
    const encryption = { key: fixtureKey(release) };
    return () => sqliteStore(path, { eventsTtl, encryption });
  },
  file: async (release) => {
    const directory = join(folder, 'files');
    unpackFiles(release, directory);
    return () => fileStore(directory, { eventsTtl });
  },
  postgres: async (release) => unpackPostgres(release, 'postgres'),
  'postgres-encrypted': async (release) =>
    unpackPostgres(release, 'postgres-encrypted', { encryption: { key: fixtureKey(release) } }),
};

let schemas = 0;

async function unpackPostgres(
  release: string,
  name: string,
  options: { readonly encryption?: { readonly key: Uint8Array } } = {},
): Promise<() => Store> {
  const { connectionString } = postgres;
  const schema = `formats_${schemas++}`;
  await loadDump(release, name, connectionString, schema);
  return () => postgresStore({ connectionString, schema, max: 4, eventsTtl, ...options });
}

const isMain = "owner = '' AND id = 'main'";

/** The encrypted title of a session as the release wrote it. */
function oldTitle(release: string): Uint8Array {
  const path = join(folder, 'old.db');
  writeFileSync(path, fixture(release, 'sqlite-encrypted.db'));
  const db = new DatabaseSync(path);
  const row = db.prepare(`SELECT title FROM sessions WHERE ${isMain}`).get();
  db.close();
  return row?.title as Uint8Array;
}

/** Writes a title past the store, bytes as text where the database keeps text. */
async function setTitle(kind: string, title: Uint8Array | string): Promise<void> {
  if (kind.startsWith('sqlite')) {
    const db = openRaw(join(folder, 'store.db'));
    db.prepare(`UPDATE sessions SET title = ? WHERE ${isMain}`).run(title);
    db.close();
    return;
  }
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  const text = typeof title === 'string' ? title : `~${Buffer.from(title).toString('base64')}`;
  const table = `formats_${schemas - 1}.sessions`;
  await client.query(`UPDATE ${table} SET title = $1 WHERE ${isMain}`, [text]);
  await client.end();
}

const cases = versions
  .flatMap((release) => Object.keys(kinds).map((kind) => ({ release, kind })))
  .filter(({ release, kind }) => hasFixture(release, kind));

describe.each(cases)('a $kind store that $release wrote', ({ release, kind }) => {
  // Later versions bind encrypted values to their places when they write them.
  const isUnbound = kind.endsWith('-encrypted') && release === '0.1.0';
  const unpack = async (): Promise<() => Store> => must(kinds[kind])(release);

  test('reads as it did, events included, and verifies', async () => {
    const store = (await unpack())();
    expect(await readout(store, lifeScopes)).toMatchObject(expectedOf(release, kind));
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
  });

  test('resumes, answers an interrupt, branches and lists', async () => {
    const open = await unpack();
    const { app, chat } = lifeApp(open());
    const before = must(await chat.getSession('main'));
    const next = await chat.runText('I like water', { sessionId: 'main' });
    const after = must(await chat.getSession('main'));
    expect(after).toMatchObject({ title: 'Drinks', turnCount: before.turnCount + 1 });
    expect(after.state?.custom).toMatchObject({ likes: ['tea', 'mate', 'water'] });
    const resume = {
      respond: [{ toolResponse: { name: 'ask', ref: 'q', output: { answer: 'y' } } }],
    };
    expect(await chat.run({ resume }, { sessionId: 'asked' })).toMatchObject({
      finishReason: 'stop',
    });
    const { items } = await chat.listSnapshots('main', { includeOrphaned: true });
    const labelled = must(items.find(({ label }) => label === 'before coffee'));
    await chat.restore(labelled.snapshotId);
    const branch = await chat.runText('I like juice', { sessionId: 'main' });
    expect(await chat.getSnapshot({ snapshotId: must(next.snapshotId) })).toMatchObject({
      orphaned: true,
    });
    await chat.fork(must(branch.snapshotId), { sessionId: 'second fork' });
    await chat.runText('trim it', { sessionId: 'second fork' });
    const found = await chat.listSessions({ query: 'drinks' });
    const ids = found.items.map(({ sessionId }) => sessionId);
    expect(ids.slice(0, 2)).toEqual(['second fork', 'main']);
    await app.close();
    const store = open();
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
  });

  test.runIf(isUnbound)('S231: accepts no older value after a rotation', async () => {
    const open = await unpack();
    const store = open() as SqlStore;
    expect(await store.rotateKeys()).toBeGreaterThan(20);
    expect(await store.rotateKeys()).toBe(0);
    expect(await readout(store, lifeScopes)).toMatchObject(expectedOf(release, kind));
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
    for (const value of [oldTitle(release), '"in clear"']) {
      await setTitle(kind, value);
      const after = open();
      const [session] = lifeScopes.map((scope) => after.timeline?.getSession(scope, 'main'));
      await expect(session).rejects.toMatchObject({ status: 'DATA_LOSS' });
      expect(must(await after.maintenance?.verify())).toContainEqual(
        expect.objectContaining({ kind: 'hash' }),
      );
      await after.close?.();
    }
  });

  test('gives a run that its worker left to another worker', async () => {
    const store = (await unpack())();
    const [taken] = await must(store.runs).takeOver({
      agents: ['chat'],
      worker: 'second',
      ttl: 60_000,
      limit: 10,
    });
    expect(taken?.run).toMatchObject({ attempt: 2, context: { who: 'ada' } });
    expect(await store.runs?.getStep(must(taken).run, 'fetch')).toEqual({
      value: { rows: [1, 2, 3] },
    });
    await store.runs?.release(must(taken).run);
    expect(await store.maintenance?.verify()).toEqual([]);
    await store.close?.();
  });
});
