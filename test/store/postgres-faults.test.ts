import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { type Clock, systemClock } from '../../src/core/time.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import type { Claim, CommitWrite } from '../../src/store/contract/store.ts';
import { postgresStore, type SqlStore } from '../../src/store/postgres/index.ts';
import { steps } from '../../src/store/postgres/schema.ts';
import { type CuttingProxy, createCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type KeyedDatabase, storeEncryption } from '../support/store-encryption.ts';
import { loadDump } from '../support/store-fixtures.ts';
import { createTurns, plainTurn } from '../support/store-workload.ts';

let postgres: TestPostgres;
let admin: pg.Pool;
beforeAll(async () => {
  postgres = await startPostgres();
  admin = new pg.Pool({ connectionString: postgres.connectionString, max: 2 });
  // The server is stopped under it.
  admin.on('error', () => {});
});
afterAll(async () => {
  await admin.end();
  await postgres.stop();
});

const newId = createIds(systemClock);
let schema = '';
let count = 0;
beforeEach(() => {
  schema = `s${count++}`;
});

const scope = { agent: 'a' };

function open(connectionString = postgres.connectionString, clock: Clock = systemClock): SqlStore {
  return postgresStore({ connectionString, schema, max: 2, clock });
}

function claim(store: SqlStore): Promise<Claim> {
  const request = { runId: newId(), sessionId: 's', from: 'head', mode: 'attached' } as const;
  const claimed = store.runs?.claim(scope, { ...request, inputs: [], ttl: 60_000, worker: 'w' });
  return claimed ?? expect.fail('the store has no runs');
}

function writeOf(held: Claim): CommitWrite {
  const { state } = plainTurn(emptyState, 0);
  return {
    snapshotId: held.runId,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    state,
    stateHash: hashState(state),
    end: true,
  };
}

describe('a database that cannot be used', () => {
  test('one that is not there is UNAVAILABLE, and the next call tries again', async () => {
    const store = open('postgres://postgres@127.0.0.1:1/postgres');
    for (let n = 0; n < 2; n++) {
      await expect(store.open?.()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    }
    await store.close?.();
  });

  test('a wrong password, and a database that does not exist', async () => {
    const wrong = open(postgres.connectionString.replace(':postgres@', ':wrong@'));
    await expect(wrong.open?.()).rejects.toMatchObject({ status: 'PERMISSION_DENIED' });
    const missing = open(postgres.connectionString.replace(/postgres$/, 'missing'));
    await expect(missing.open?.()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await Promise.all([wrong.close?.(), missing.close?.()]);
  });

  test('tables of a newer format say what to do', async () => {
    const store = open();
    await store.open?.();
    await store.close?.();
    await admin.query(`UPDATE ${schema}.meta SET format = 99`);
    const again = open();
    await expect(again.open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format 99.*Update waymark/),
    });
    await again.close?.();
  });

  test('tables of an older format get what has come since, and keep what they hold', async () => {
    await loadDump('0.1.0', 'postgres', postgres.connectionString, schema);
    const { rows } = await admin.query(
      'SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace = $1::regnamespace',
      [schema],
    );
    // As tables of before there were functions.
    for (const { name } of rows) await admin.query(`DROP FUNCTION ${name}`);
    await admin.query(`UPDATE ${schema}.meta SET format = 2`);
    const again = open();
    await createTurns(again).take(2, plainTurn);
    const read = await again.getSnapshot({ agent: 'chat' }, { sessionId: 'main' });
    expect(read?.state?.messages).toHaveLength(10);
    const found = await admin.query(`SELECT format FROM ${schema}.meta`);
    expect(found.rows).toEqual([{ format: steps.length }]);
    await again.close?.();
  });

  test('a read-only database', async () => {
    const store = open();
    await store.open?.();
    const readOnly = postgresStore({
      connectionString: `${postgres.connectionString}?options=-c%20default_transaction_read_only%3Don`,
      schema,
    });
    await expect(claim(readOnly)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await Promise.all([store.close?.(), readOnly.close?.()]);
  });

  test('a schema name that is none', () => {
    for (const name of ['', 'a b', 'x"; DROP TABLE y', 'a'.repeat(40)]) {
      const options = { connectionString: postgres.connectionString, schema: name };
      expect(() => postgresStore(options)).toThrow(/schema name/);
    }
  });
});

test('several processes may make the tables at once', async () => {
  const stores = Array.from({ length: 6 }, () => open());
  await Promise.all(stores.map((store) => store.open?.()));
  await createTurns(stores[0] ?? expect.fail()).take(1, plainTurn);
  const { rows } = await admin.query(`SELECT COUNT(*) AS count FROM ${schema}.meta`);
  expect(Number(rows[0].count)).toBe(1);
  await Promise.all(stores.map((store) => store.close?.()));
});

test('a pool of yours is used and left open', async () => {
  const store = postgresStore({ pool: admin, schema });
  await createTurns(store).take(2, plainTurn);
  await store.close?.();
  expect((await admin.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
});

describe('a connection that is lost', () => {
  let proxy: CuttingProxy;
  let store: SqlStore;
  beforeEach(async () => {
    const url = new URL(postgres.connectionString);
    proxy = await createCuttingProxy(Number(url.port));
    url.port = String(proxy.port);
    // Never polls, so that only the connection that listens calls back.
    store = open(String(url), { ...systemClock, every: () => () => {} });
    await store.open?.();
    return async () => {
      await store.close?.();
      await proxy.close();
    };
  });

  test('before a save: it is refused as UNAVAILABLE, what was there is there, and it can be tried again', async () => {
    const turns = createTurns(store);
    await turns.take(2, plainTurn);
    const held = await claim(store);
    proxy.cutAll();
    const write = writeOf(held);
    await expect(store.runs?.commit(held, write)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    proxy.heal();
    const lookup = { sessionId: turns.sessionId };
    const read = await store.getSnapshot(turns.scope, lookup);
    expect(read?.state?.messages).toHaveLength(4);
    expect((await store.runs?.commit(held, write))?.snapshot.index).toBe(0);
    expect(await store.maintenance?.verify()).toEqual([]);
  });

  test('after a save, before its answer: trying again finds that it was done', async () => {
    const held = await claim(store);
    const write = writeOf(held);
    proxy.cutNextAnswer();
    await expect(store.runs?.commit(held, write)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    const again = await store.runs?.commit(held, write);
    expect(again?.snapshot).toMatchObject({
      snapshotId: held.runId,
      index: 0,
      status: 'succeeded',
    });
    const { items } = (await store.timeline?.listSnapshots(scope, 's')) ?? expect.fail();
    expect(items).toHaveLength(1);
    const next = await claim(store);
    const { state } = plainTurn(write.state, 1);
    const base = again?.base ?? expect.fail();
    const second = { ...writeOf(next), base, parentId: base.snapshotId, turnIndex: 1 };
    await store.runs?.commit(next, { ...second, state, stateHash: hashState(state) });
    expect(await store.maintenance?.verify()).toEqual([]);
  });

  test('a save that somebody else made under the id is still refused', async () => {
    const held = await claim(store);
    await store.runs?.commit(held, writeOf(held));
    await expect(store.runs?.commit(held, writeOf(held))).rejects.toMatchObject({
      status: 'ABORTED',
    });
  });

  test('while listening: what happens afterwards is heard again', async () => {
    const held = await claim(store);
    let heard = 0;
    const next = async (): Promise<void> => {
      await eventually(() => heard > 0);
      heard = 0;
    };
    const leave = store.abort?.onChange(held.runId, () => {
      heard++;
    });
    // It calls back whenever it has begun to listen, because it may have missed something.
    await next();
    proxy.cutAll();
    proxy.heal();
    await next();
    const other = open();
    await other.abort?.abortSnapshot(scope, held.runId);
    await next();
    leave?.();
    await other.close?.();
  });
});

test('a server that stops ends no process whose stores are open, and they go on when it is back', async () => {
  const store = open();
  const turns = createTurns(store);
  await turns.take(2, plainTurn);
  const leave = store.abort?.onChange(newId(), () => {});
  const lent = postgresStore({ pool: admin, schema });
  await lent.open?.();
  const refused = await openRefused();
  await postgres.shutDown();
  await expect(turns.take(1, plainTurn)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  await postgres.startAgain();
  const read = await store.getSnapshot(turns.scope, { sessionId: turns.sessionId });
  expect(read?.state?.messages).toHaveLength(4);
  leave?.();
  await Promise.all([store.close?.(), lent.close?.(), refused.close?.()]);
});

/** A store that could connect and then found tables that it cannot use. */
async function openRefused(): Promise<SqlStore> {
  const own = `r${count++}`;
  const options = { connectionString: postgres.connectionString, schema: own };
  const made = postgresStore(options);
  await made.open?.();
  await made.close?.();
  await admin.query(`UPDATE ${own}.meta SET format = 99`);
  const refused = postgresStore(options);
  await expect(refused.open?.()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  return refused;
}

storeEncryption('the Postgres store', async (): Promise<KeyedDatabase> => {
  const { connectionString } = postgres;
  const own = `e${count++}`;
  return {
    open: (encryption) =>
      postgresStore({
        connectionString,
        schema: own,
        max: 2,
        ...(encryption === undefined ? {} : { encryption }),
      }),
    async dump() {
      const { rows: tables } = await admin.query(
        'SELECT tablename AS name FROM pg_tables WHERE schemaname = $1',
        [own],
      );
      const texts = tables.map(async ({ name }) => {
        const { rows } = await admin.query(`SELECT t::text AS row FROM ${own}.${name} t`);
        return rows.map(({ row }) => row).join('\n');
      });
      return (await Promise.all(texts)).join('\n');
    },
    async documents() {
      const { rows } = await admin.query(`SELECT COUNT(*) AS count FROM ${own}.blobs`);
      return Number(rows[0].count);
    },
    close: async () => {},
  };
});
