import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { textOf } from '../../src/protocol/messages.ts';
import type { Store } from '../../src/store/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { eventually } from '../support/eventually.ts';
import { scope, sessionId, takeTurn } from '../support/expired-turn.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const newId = createIds(systemClock);
let postgres: TestPostgres;
let admin: pg.Client;
beforeAll(async () => {
  postgres = await startPostgres();
  admin = new pg.Client({ connectionString: postgres.connectionString });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await postgres.stop();
});

test('a database user who may not create functions writes in transactions of single statements', async () => {
  const owner = postgresStore({ connectionString: postgres.connectionString, schema: 'owned' });
  await owner.open?.();
  await owner.close?.();
  const { rows } = await admin.query(
    `SELECT p.oid::regprocedure::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = 'owned' AND p.proname LIKE 'write%'`,
  );
  expect(rows).toHaveLength(1);
  await admin.query(`DROP FUNCTION ${rows[0].name};
    CREATE ROLE plain LOGIN PASSWORD 'plain';
    GRANT USAGE ON SCHEMA owned TO plain;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA owned TO plain;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA owned TO plain;`);
  const url = new URL(postgres.connectionString);
  url.username = 'plain';
  url.password = 'plain';
  const names: string[] = [];
  const store = postgresStore({
    connectionString: String(url),
    schema: 'owned',
    onQuery: (name) => names.push(name),
  });
  expect(await takeTurn(store, 'a')).toBe(true);
  expect(await takeTurn(store, 'b')).toBe(true);
  expect(names).toContain('commit_unchanged');
  expect(names).not.toContain('commit');
  const head = await store.getSnapshot(scope, { sessionId });
  expect(head?.state?.messages?.map(textOf)).toEqual(['a', 'b']);
  await store.close?.();
  await admin.query('ALTER ROLE plain SET default_transaction_read_only TO on');
  const reader = postgresStore({ connectionString: String(url), schema: 'owned' });
  expect(await reader.getSnapshot(scope, { sessionId })).toMatchObject({ turnIndex: 1 });
  await reader.close?.();
});

test('a frequent write gets its own function, does without when it is dropped, and gets it again', async () => {
  const options = { connectionString: postgres.connectionString, schema: 'shaped' };
  const names: string[] = [];
  const store = postgresStore({ ...options, onQuery: (name) => names.push(name) });
  const other = postgresStore(options);
  const functions = async (): Promise<readonly string[]> => {
    const { rows } = await admin.query(
      `SELECT p.oid::regprocedure::text AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname = 'shaped' AND p.proname LIKE 'write%' ORDER BY p.pronargs`,
    );
    return rows.map(({ name }) => name);
  };
  const texts: string[] = [];
  const turn = async (on: Store): Promise<void> => {
    const text = `turn ${texts.length}`;
    expect(await takeTurn(on, text)).toBe(true);
    texts.push(text);
  };
  while ((await functions()).length < 3) {
    expect(texts.length).toBeLessThan(500);
    await turn(store);
  }
  const [, ...shapes] = await functions();
  // The server has a function a moment before the process knows.
  await turn(store);
  await turn(store);
  const { rows: last } = await admin.query(
    `SELECT substring(query FROM 'write_[0-9a-f]+') AS name FROM pg_stat_activity
     WHERE query LIKE 'SELECT "shaped".write_%' ORDER BY query_start DESC`,
  );
  expect(shapes.join()).toContain(last[0].name);
  names.length = 0;
  await turn(store);
  expect(names).toEqual(['claim', 'locate_by_id', 'read_state', 'commit']);
  expect(await takeTurn(store, 'too late', () => turn(other))).toBe(false);
  await admin.query(shapes.map((name) => `DROP FUNCTION ${name};`).join(' '));
  await turn(store);
  while ((await functions()).length < 3) {
    expect(texts.length).toBeLessThan(500);
    await turn(store);
  }
  const head = await store.getSnapshot(scope, { sessionId });
  expect(head?.state?.messages?.map(textOf)).toEqual(texts);
  await store.close?.();
  await other.close?.();
});

test('a claim lasts from the moment in which it gets its session, however long it waited', async () => {
  const store = postgresStore({ connectionString: postgres.connectionString, schema: 'waited' });
  expect(await takeTurn(store, 'a')).toBe(true);
  await admin.query('BEGIN');
  await admin.query('SELECT 1 FROM waited.sessions FOR UPDATE');
  const claimed = store.runs?.claim(scope, {
    runId: newId(),
    sessionId,
    from: 'head',
    mode: 'attached',
    inputs: [],
    ttl: 60_000,
    worker: 'w',
  });
  await eventually(async () => {
    const { rows } = await admin.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%write_%'`,
    );
    expect(rows).toHaveLength(1);
  });
  const { rows: times } = await admin.query(
    'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
  );
  await admin.query('COMMIT');
  await claimed;
  const { rows: runs } = await admin.query('SELECT heartbeat::float8 AS at FROM waited.runs');
  expect(runs[0].at).toBeGreaterThanOrEqual(times[0].now);
  await store.close?.();
});

test('a claim of a new session that is refused leaves no session behind', async () => {
  const names: string[] = [];
  const store = postgresStore({
    connectionString: postgres.connectionString,
    schema: 'refused',
    onQuery: (name) => names.push(name),
  });
  expect(await takeTurn(store, 'a')).toBe(true);
  const head = await store.getSnapshot(scope, { sessionId });
  names.length = 0;
  const claimed = store.runs?.claim(scope, {
    runId: head?.snapshotId ?? '',
    sessionId: 'other',
    from: 'head',
    mode: 'attached',
    inputs: [],
    ttl: 60_000,
    worker: 'w',
  });
  await expect(claimed).rejects.toMatchObject({ status: 'ALREADY_EXISTS' });
  expect(names[0]).toBe('claim');
  const { rows } = await admin.query('SELECT id FROM refused.sessions');
  expect(rows).toEqual([{ id: sessionId }]);
  await store.close?.();
});
