import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from '../../src/index.ts';
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

test('S647: turns with a state, in sessions that are pruned, and maintenance never wait for each other', async () => {
  const { connectionString } = postgres;
  const before = await deadlocks();
  const store = postgresStore({ connectionString, schema: 'pruned' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'noted' }, async (session) => {
    await session.run(async () => {
      session.updateCustom((state) => ({ ...Object(state), at: session.messages.length }));
    });
  });
  const other = postgresStore({ connectionString, schema: 'pruned' });
  let isDone = false;
  const turns = async (sessionId: string): Promise<void> => {
    for (let no = 0; no < 60; no++) await agent.runText(`${no}`, { sessionId });
  };
  const pruning = async (): Promise<void> => {
    while (!isDone) await other.maintenance?.prune({ keepLast: 1 });
  };
  const collecting = pruning();
  await Promise.all(['a', 'b', 'c', 'd'].map(turns)).finally(() => {
    isDone = true;
  });
  await collecting;
  expect(await store.maintenance?.verify()).toEqual([]);
  await Promise.all([app.close(), other.close?.()]);
  expect(await deadlocks()).toBe(before);
});

test('S648: with one connection, a turn runs while a long session is verified', async () => {
  const names: string[] = [];
  const during: Promise<unknown>[] = [];
  const store = postgresStore({
    connectionString: postgres.connectionString,
    schema: 'single',
    max: 1,
    onQuery(name) {
      names.push(name);
      if (name === 'verify_listed' && during.length === 0) {
        during.push(agent.runText('meanwhile', { sessionId: 'other' }));
      }
    },
  });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'long' }, async (session) => {
    await session.run(async () => {});
  });
  for (let no = 0; no < 900; no++) await agent.runText(`${no}`, { sessionId: 's' });
  names.length = 0;
  expect(await store.maintenance?.verify()).toEqual([]);
  await Promise.all(during);
  expect(during).toHaveLength(1);
  // They are in one transaction of the session: on the same connection, the turn would have to wait for the last.
  expect(names.indexOf('quick_commit_title')).toBeGreaterThan(0);
  expect(names.indexOf('quick_commit_title')).toBeLessThan(names.lastIndexOf('verify_listed'));
  await app.close();
});
