import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Encryption, libsqlStore } from '../../src/store/libsql/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { movableClock } from './movable-clock.ts';

/** A folder for a database, and the URL of a file in it. */
export async function libsqlFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-libsql-'));
  return {
    folder,
    url: `file:${join(folder, 'store.db')}`,
    remove: () => rm(folder, { recursive: true }),
  };
}

/** An empty libSQL store in a file, for a test of the conformance suite. */
export async function openLibsql(encryption?: Encryption): Promise<OpenedStore> {
  const { folder, url, remove } = await libsqlFolder();
  const { clock, advance } = movableClock();
  const open = () => libsqlStore({ url, clock, ...(encryption && { encryption }) });
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
      await remove();
    },
    ...(encryption === undefined && {
      async dump() {
        const files = await readdir(folder);
        const texts = files.map((file) => readFile(join(folder, file), 'latin1'));
        return (await Promise.all(texts)).join('\n');
      },
    }),
  };
}
