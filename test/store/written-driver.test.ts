import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SqlStoreOptions, sqlStore } from 'waymark/sql';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { movableClock } from '../support/movable-clock.ts';
import { type LibsqlClient, libsqlDriver } from './libsql-driver.ts';

const { createClient } = createRequire(import.meta.url)('@libsql/client') as {
  createClient(options: { readonly url: string; readonly concurrency: number }): LibsqlClient;
};

/** A store over a driver that knows only the public entries. */
async function openLibsql(encryption?: SqlStoreOptions['encryption']): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-libsql-'));
  const url = `file:${join(folder, 'store.db')}`;
  const { clock, advance } = movableClock();
  const open = () => {
    const driver = libsqlDriver(createClient({ url, concurrency: 1 }), { now: clock.now });
    return sqlStore({ name: 'libsql', driver, clock, encryption });
  };
  let store = open();
  return {
    store,
    ...(encryption && { searchesText: false }),
    advance,
    async reopen() {
      await store.close?.();
      store = open();
      await store.open?.();
      return store;
    },
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
  };
}

storeContract('a driver over the public entries', () => openLibsql());
