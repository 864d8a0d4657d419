import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from 'waymark';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { startPostgres } from '../../support/postgres.ts';

/** A store of a test, and how to remove what it has left. */
export interface TestStore {
  readonly store: Store;
  remove(): Promise<void>;
}

/** The stores that people use Studio with. */
export const stores: Readonly<Record<'SQLite' | 'Postgres', () => Promise<TestStore>>> = {
  async SQLite() {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-studio-'));
    return {
      store: sqliteStore(join(folder, 'sessions.db')),
      remove: () => rm(folder, { recursive: true, force: true }),
    };
  },
  async Postgres() {
    const postgres = await startPostgres();
    const { connectionString } = postgres;
    return { store: postgresStore({ connectionString }), remove: () => postgres.stop() };
  },
};
