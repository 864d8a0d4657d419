import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { movableClock } from '../support/movable-clock.ts';

async function openFile(): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-'));
  const path = join(folder, 'store.db');
  const { clock, advance } = movableClock();
  let store = sqliteStore(path, { clock });
  return {
    store,
    advance,
    async reopen() {
      await store.close?.();
      store = sqliteStore(path, { clock });
      await store.open?.();
      return store;
    },
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
    async dump() {
      const files = await readdir(folder);
      const texts = files.map((file) => readFile(join(folder, file), 'latin1'));
      return (await Promise.all(texts)).join('\n');
    },
  };
}

storeContract('sqlite', openFile);
