import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { type Encryption, sqliteStore } from '../../src/store/sqlite/index.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { fixture, runnable } from '../support/store-fixtures.ts';
import { createTurns, plainTurn } from '../support/store-workload.ts';

interface Options {
  readonly encryption?: Encryption;
}

/** What a released version opens a store with. */
interface Released {
  sqliteStore(path: string, options: Options): Store;
  fileStore(folder: string): Store;
  postgresStore(options: Options & { readonly pool: pg.Pool; readonly schema: string }): Store;
}

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

let folder = '';
let schema = '';
let schemas = 0;
/** One for each version, as they would be in two processes. */
const pools = new Map<Released, pg.Pool>();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-two-versions-'));
  schema = `two_versions_${schemas++}`;
});
afterEach(async () => {
  await Promise.all([...pools.values()].map((pool) => pool.end()));
  pools.clear();
  await rm(folder, { recursive: true, force: true });
});

async function released(release: string): Promise<Released> {
  const path = join(folder, 'stores.mjs');
  writeFileSync(path, fixture(release, 'stores.mjs'));
  return (await import(pathToFileURL(path).href)) as Released;
}

function poolOf(version: Released): pg.Pool {
  const { connectionString } = postgres;
  const pool = pools.get(version) ?? new pg.Pool({ connectionString, max: 4 });
  pools.set(version, pool);
  return pool;
}

const encryption = { key: new Uint8Array(32).fill(5) };
const current: Released = { sqliteStore, fileStore, postgresStore };
/** How a version opens the store of a test. */
const kinds: Readonly<Record<string, (version: Released) => Store>> = {
  sqlite: (version) => version.sqliteStore(join(folder, 'store'), {}),
  'encrypted sqlite': (version) => version.sqliteStore(join(folder, 'store'), { encryption }),
  file: (version) => version.fileStore(join(folder, 'store')),
  postgres: (version) => version.postgresStore({ pool: poolOf(version), schema }),
  'encrypted postgres': (version) =>
    version.postgresStore({ pool: poolOf(version), schema, encryption }),
};
const cases = runnable.flatMap((release) =>
  Object.entries(kinds)
    // The files of this one have today's format.
    .filter(([kind]) => release !== '673fb6a' || kind !== 'file')
    .map(([kind, open]) => ({ release, kind, open })),
);

describe.each(cases)('a store ($kind) that $release has open', ({ release, kind, open }) => {
  test('S234: is refused to it, or its turns count, once this version has changed the format', async () => {
    const old = await released(release);
    const before = open(old);
    await before.open?.();
    const turns = createTurns(before);
    await turns.take(2, plainTurn);
    const { scope, sessionId } = turns;

    const now = open(current);
    const held = await now.runs?.load(scope, { sessionId });
    expect(held?.state.history.length).toBe(4);
    const own = createTurns(now, scope);
    await own.take(1, plainTurn);
    await now.timeline?.updateSession(scope, sessionId, { title: 'from the new version' });

    // What the older process still gets is all of it, or an error; never less.
    const read = await before.timeline?.getSession(scope, sessionId).then(
      (session) => session?.title,
      () => 'refused',
    );
    expect(['from the new version', 'refused']).toContain(read);
    const wrote = await turns.take(1, plainTurn).then(
      () => true,
      () => false,
    );
    // A format that only adds a column lets it write, and what it wrote counts. The files are converted.
    const mayWrite = !['0.1.0', '781b7a8'].includes(release);
    expect(wrote).toBe(mayWrite && kind !== 'file');
    const after = await now.runs?.load(scope, { sessionId });
    expect(after?.state.history.length).toBe(wrote ? 6 : 4);
    await before.close?.();

    const again = open(old);
    await expect(again.timeline?.getSession(scope, sessionId)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format \d+/),
    });
    await again.close?.();
    await createTurns(now, scope).take(1, plainTurn);
    expect(await now.maintenance?.verify()).toEqual([]);
    await now.close?.();
  });
});
