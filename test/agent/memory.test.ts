import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { openPostgres } from '../support/contract-stores.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { memoryBehaviour } from './support/memory-behaviour.ts';
import { memoryWork } from './support/memory-work.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await clock.close();
  await postgres.stop();
});

const key = { key: new Uint8Array(32).fill(7) };

async function inFolder<S extends { close?(): Promise<void> }>(open: (folder: string) => S) {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-memory-'));
  const store = open(folder);
  return {
    store,
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
  };
}

for (const cases of [memoryBehaviour, memoryWork]) {
  cases('memory', async () => ({ store: memoryStore(), close: async () => {} }));
  cases('file', () => inFolder((folder) => fileStore(join(folder, 'files'))));
  cases('SQLite', () => inFolder((folder) => sqliteStore(join(folder, 'test.db'))));
  cases('encrypted SQLite', () =>
    inFolder((folder) => sqliteStore(join(folder, 'test.db'), { encryption: key })),
  );
  cases('Postgres', () => openPostgres({ clock, schemas }));
}
