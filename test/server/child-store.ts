import type { Store } from '../../src/session/store.ts';

/** Opens a store that several processes share. */
export async function openTestStore(kind: string, place: string): Promise<Store> {
  switch (kind) {
    case 'sqlite': {
      const { sqliteStore } = await import('../../src/store/sqlite/index.ts');
      return sqliteStore(place);
    }
    case 'postgres': {
      const { postgresStore } = await import('../../src/store/postgres/index.ts');
      return postgresStore({ connectionString: place, max: 10 });
    }
    default:
      throw new Error(`No store ${kind}`);
  }
}
