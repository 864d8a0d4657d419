import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sqlStore } from 'waymark/sql';
import { smallDriver, smallStore } from '../../docs/snippets/sql-driver.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { movableClock } from '../support/movable-clock.ts';

storeContract(
  'the driver of the guide',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-driver-'));
    const { clock, advance } = movableClock();
    const open = () => {
      const driver = smallDriver(join(folder, 'store.db'), { now: clock.now });
      return sqlStore({ name: 'small', driver, clock });
    };
    let store = open();
    return {
      store,
      advance,
      async reopen() {
        await store.close?.();
        store = open();
        return store;
      },
      async close() {
        await store.close?.();
        await rm(folder, { recursive: true });
      },
    };
  },
  { runs: 2 },
);

test('the store of the guide opens and closes', async () => {
  const store = smallStore(':memory:');
  await store.open?.();
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.close?.();
});
