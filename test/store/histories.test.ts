/** What the long run adds to the conformance suites of the short run: longer random histories, and the suite of encrypted Postgres. */
import { afterAll, beforeAll } from 'vitest';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { storeContract } from '../../src/testing/contract.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { openPostgres, openSqlite } from '../support/contract-stores.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { storeHistories } from '../support/store-histories.ts';
import { openForContract, takingTurns } from './file-support.ts';

const encryption = { key: new Uint8Array(32).fill(3) };

let postgres: TestPostgres;
let clock: PostgresClock;
let schemas: CleanSchemas;
let encryptedSchemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
  schemas = cleanSchemas(postgres.connectionString);
  encryptedSchemas = cleanSchemas(postgres.connectionString, 'encrypted');
});
afterAll(async () => {
  await schemas.close();
  await encryptedSchemas.close();
  await clock.close();
  await postgres.stop();
});

storeHistories(
  'memory',
  async () => {
    const movable = fakeClock('2026-01-01T00:00:00Z');
    return {
      store: memoryStore({ clock: movable }),
      close: async () => {},
      advance: (ms) => movable.advance(ms),
    };
  },
  { runs: 300 },
);
storeHistories('sqlite', () => openSqlite(), { runs: 60 });
storeHistories('sqlite, encrypted', () => openSqlite(encryption), { runs: 30 });
storeHistories('postgres', () => openPostgres({ clock, schemas }), { runs: 30 });
storeHistories(
  'file',
  () => openForContract((directory, at) => fileStore(directory, { clock: at })),
  { runs: 30 },
);
storeHistories('file, two of them taking turns', () => openForContract(takingTurns), { runs: 30 });

// Both SQL stores encrypt by the same code; the short run takes the quicker of them.
storeContract(
  'postgres, encrypted',
  () => openPostgres({ clock, schemas: encryptedSchemas }, encryption),
  { runs: 15 },
);
