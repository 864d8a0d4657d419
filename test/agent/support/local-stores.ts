import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../../src/store/contract/store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { memoryStore } from '../../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';

const stores = {
  memory: () => memoryStore(),
  sqlite: (folder: string) => sqliteStore(join(folder, 'test.db')),
  file: (folder: string) => fileStore(join(folder, 'files')),
} satisfies Record<string, (folder: string) => Store>;

/** The stores that need no server, by name. */
export const localStores = Object.keys(stores) as (keyof typeof stores)[];

/** Works with a new store, and removes it afterwards. */
export async function withLocalStore(
  name: keyof typeof stores,
  work: (store: Store) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-agent-'));
  const store = stores[name](folder);
  try {
    await work(store);
  } finally {
    await store.close?.();
    await rm(folder, { recursive: true });
  }
}
