import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { raceForTurns, scope, sessionId, takeTurn } from '../support/expired-turn.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** How often Postgres had to end one of two that waited for each other; what closed connections have counted is in it. */
async function deadlocks(): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  const { rows } = await client.query<{ found: string }>(
    'SELECT sum(deadlocks) AS found FROM pg_stat_database',
  );
  await client.end();
  return Number(rows[0]?.found);
}

test('a session that is taken in the moment in which its slow worker saves continues from what was saved', async () => {
  const stores = Array.from({ length: 4 }, () =>
    postgresStore({ connectionString: postgres.connectionString, max: 2 }),
  );
  await Promise.all(stores.map((store) => store.open?.()));
  await raceForTurns(stores, 100);
  expect(await deadlocks()).toBe(0);
});

test('a commit goes by what the claim has found, and by what is there when that has changed', async () => {
  const { connectionString } = postgres;
  const names: string[] = [];
  const store = postgresStore({
    connectionString,
    schema: 'changed',
    onQuery: (name) => names.push(name),
  });
  const other = new pg.Client({ connectionString });
  await other.connect();
  const turn = async (text: string, change?: string): Promise<readonly string[]> => {
    await takeTurn(store, text, async () => {
      if (change !== undefined) await other.query(change);
      names.length = 0;
    });
    return [...names];
  };
  expect(await turn('a')).toEqual(['quick_commit']);
  expect(await turn('b')).toEqual(['quick_commit']);
  const [quick, ...long] = await turn('c', 'UPDATE changed.sessions SET next_index = 7');
  expect(quick).toBe('quick_commit');
  expect(long).toContain('commit_snapshot');
  expect(await turn('d')).toEqual(['quick_commit']);
  // As if it had been pruned: there is nothing to continue from.
  const gone = 'UPDATE changed.snapshots SET status = 3 WHERE idx = 8';
  await expect(turn('e', gone)).rejects.toThrow('is not a succeeded snapshot of session "s"');
  const page = await store.timeline?.listSnapshots(scope, sessionId);
  expect(page?.items.map(({ index }) => index)).toEqual([0, 1, 7, 8]);
  await other.end();
  await store.close?.();
});
