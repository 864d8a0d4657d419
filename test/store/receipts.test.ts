import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Store, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'receipts-'));
});
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const encryption = { key: new Uint8Array(32).fill(3) };

async function inPostgres(schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  await client.query(`UPDATE ${schema}.requests SET receipt = left(receipt, -3)`);
  await client.end();
}

function inSqlite(name: string): void {
  using db = new DatabaseSync(join(folder, name));
  // As damage on the disk, which the triggers of the checksums do not see.
  const triggers = db
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'requests'`)
    .all();
  for (const trigger of triggers) db.exec(`DROP TRIGGER ${trigger.name}`);
  db.exec('UPDATE requests SET receipt = substr(receipt, 1, length(receipt) - 3)');
}

async function inFiles(): Promise<void> {
  for (const entry of await readdir(join(folder, 'files'), { recursive: true })) {
    const name = join(folder, 'files', entry);
    const text = await readFile(name, 'utf8').catch(() => '');
    if (!text.includes('"receipt"')) continue;
    await writeFile(name, text.replace(/("receipt".*?)turnIndex/, '$1turnIndey'));
  }
}

const stores: Readonly<
  Record<string, readonly [open: () => Store, damage: () => Promise<void> | void]>
> = {
  file: [() => fileStore(join(folder, 'files')), inFiles],
  SQLite: [() => sqliteStore(join(folder, 'plain.db')), () => inSqlite('plain.db')],
  'encrypted SQLite': [
    () => sqliteStore(join(folder, 'sealed.db'), { encryption }),
    () => inSqlite('sealed.db'),
  ],
  Postgres: [
    () => postgresStore({ connectionString: postgres.connectionString, schema: 'plain' }),
    () => inPostgres('plain'),
  ],
  'encrypted Postgres': [
    () =>
      postgresStore({ connectionString: postgres.connectionString, schema: 'sealed', encryption }),
    () => inPostgres('sealed'),
  ],
};

const names = Object.keys(stores);

test.each(names)(
  'S729 verify of a %s store reports a damaged receipt of a request',
  async (name) => {
    const [open, damage] = stores[name] ?? expect.fail();
    const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
    const app = waymark({ model, store: open(), onError: () => {} });
    const agent = app.defineAgent({ name: 'chat' });
    await agent.run('hi', { requestId: 'once' });
    expect(await (app.store as Store).maintenance?.verify()).toEqual([]);
    await app.close();
    await damage();
    const store = open();
    const faults = (await store.maintenance?.verify()) ?? [];
    expect(faults.length).toBeGreaterThan(0);
    await store.close?.();
  },
);
