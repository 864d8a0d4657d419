import type { Store } from '../../src/session/store.ts';

/** Opens a store that several processes share. */
export async function openTestStore(kind: string, place: string): Promise<Store> {
  switch (kind) {
    case 'file': {
      const { fileStore } = await import('../../src/store/file/index.ts');
      return fileStore(place, { durable: false });
    }
    case 'sqlite': {
      const { sqliteStore } = await import('../../src/store/sqlite/index.ts');
      return sqliteStore(place);
    }
    default:
      throw new Error(`No store ${kind}`);
  }
}
