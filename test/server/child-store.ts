import type { Clock } from '../../src/core/time.ts';
import type { Store } from '../../src/store/contract/store.ts';

// Longer than a busy machine takes to come back to a run that has ended, and than tests move the clock.
const eventsTtl = 6_000_000;

/** Opens a store that several processes share. */
export async function openTestStore(kind: string, place: string, clock: Clock): Promise<Store> {
  switch (kind) {
    case 'sqlite': {
      const { sqliteStore } = await import('../../src/store/sqlite/index.ts');
      return sqliteStore(place, { eventsTtl, clock });
    }
    case 'postgres': {
      const { postgresStore } = await import('../../src/store/postgres/index.ts');
      return postgresStore({ connectionString: place, max: 10, eventsTtl });
    }
    default:
      throw new Error(`No store ${kind}`);
  }
}
