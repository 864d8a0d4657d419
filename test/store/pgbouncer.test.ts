import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { engineContract, storeContract } from '../../src/testing/contract.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { pgbouncer, startPgBouncer, type TestPooler } from '../support/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { type ChildTask, childScope } from '../support/store-child.ts';
import { storeProcesses } from '../support/store-processes.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let schemas: CleanSchemas;
let pooler: TestPooler;
let count = 0;
// The suites of other stores, once more.
const isLong = process.env.LONG === '1';

// The reason stands in the report of the run.
describe.skipIf(pgbouncer === undefined)(
  pgbouncer === undefined ? 'skipped: PgBouncer is not installed' : 'behind PgBouncer',
  () => {
    beforeAll(async () => {
      postgres = await startPostgres();
      clock = await postgresClock(postgres.connectionString);
      schemas = cleanSchemas(postgres.connectionString);
      pooler = await startPgBouncer(pgbouncer ?? '', clock.connectionString);
    });
    afterAll(async () => {
      await pooler.stop();
      await schemas.close();
      await clock.close();
      await postgres.stop();
    });
    afterEach(endProcesses);

    const open = (schema: string, options: { readonly directUrl?: string } = {}) =>
      postgresStore({ connectionString: pooler.connectionString, schema, max: 4, ...options });

    if (isLong)
      storeContract(
        'postgres behind PgBouncer',
        async () => {
          const schema = schemas.take();
          const past = { directUrl: clock.connectionString };
          let store = open(schema, past);
          return {
            store,
            advance: (ms) => clock.advance(ms),
            async reopen() {
              await store.close?.();
              store = open(schema, past);
              await store.open?.();
              return store;
            },
            async close() {
              await store.close?.();
              await schemas.giveBack(schema);
            },
          };
        },
        { runs: 5 },
      );

    if (isLong)
      storeProcesses(
        'Postgres behind PgBouncer',
        async () => {
          const schema = `processes_${count++}`;
          const { connectionString } = pooler;
          return { shared: { kind: 'postgres', connectionString, schema }, close: async () => {} };
        },
        { processes: 2 },
      );

    test('400 turns of two processes are all there, in order', async () => {
      const schema = `turns_${count++}`;
      const { connectionString } = pooler;
      const store = open(schema);
      await store.open?.();
      const script = bundleChild(new URL('../support/store-child.ts', import.meta.url));
      const shared = JSON.stringify({ kind: 'postgres', connectionString, schema });
      const names = ['one', 'two'];
      const children = names.map((name) => {
        const task: ChildTask = { kind: 'add', sessionId: name, name, count: 200 };
        return startProcess([script, shared, JSON.stringify(task)]);
      });
      for (const child of children) await child.finished();
      for (const name of names) {
        const read = await store.getSnapshot(childScope, { sessionId: name });
        const texts = read?.state?.messages?.map(({ content: [part] }) => part);
        expect(texts).toEqual(Array.from({ length: 200 }, (_, n) => ({ text: `${name} ${n}` })));
      }
      expect(await store.maintenance?.verify()).toEqual([]);
      await store.close?.();
    });

    test.each([
      ['by polling', false],
      ['over the direct URL', true],
    ])('a run is watched and aborted from another app, %s', async (_, isDirect) => {
      const schema = `watch_${count++}`;
      const past = isDirect ? { directUrl: clock.connectionString } : {};
      const apps = [0, 1].map(() => {
        const app = waymark({ store: open(schema, past), onError: () => {} });
        app.defineCustomAgent({ name: 'counter' }, async (session, { respond, signal }) => {
          await session.run(async () => {
            await respond.modelChunk({ content: [{ text: 'begun' }] });
            await new Promise((resolve) => {
              signal.addEventListener('abort', resolve, { once: true });
            });
          });
        });
        return app;
      });
      const [mine, other] = apps.map((app) => app.agent('counter'));
      const run = await mine?.start('go');
      const watched = other?.attach(run?.id ?? '');
      const seen: string[] = [];
      for await (const event of watched?.watch() ?? []) {
        if (event.type !== 'chunk' || event.chunk.modelChunk === undefined) continue;
        seen.push('chunk');
        await watched?.abort();
      }
      expect(seen).toEqual(['chunk']);
      expect(await watched?.status()).toBe('aborted');
      for (const app of apps) await app.close();
    });

    test('S440: a store finds out by itself, and does not mistake the server for a pooler', async () => {
      const named = async (connectionString: string): Promise<number> => {
        const pool = new pg.Pool({ connectionString, max: 1 });
        const store = postgresStore({ pool, schema: `found_${count++}` });
        await store.open?.();
        const { rows } = await pool.query(
          'SELECT COUNT(*)::int AS named FROM pg_prepared_statements',
        );
        await store.close?.();
        await pool.end();
        return rows[0].named;
      };
      expect(await named(pooler.connectionString)).toBe(0);
      expect(await named(clock.connectionString)).toBeGreaterThan(0);
    });

    if (isLong)
      engineContract('pg-boss behind PgBouncer', async () => {
        const { connectionString } = pooler;
        const schema = `queue_${count++}`;
        const pools: pg.Pool[] = [];
        return {
          createApp({ work }) {
            const pool = new pg.Pool({ connectionString, max: 6 });
            pool.on('error', () => {});
            pools.push(pool);
            return waymark({
              store: postgresStore({ pool, schema }),
              engine: pgBossEngine({ pool, schema: `${schema}_jobs` }),
              work,
            });
          },
          async close() {
            for (const pool of pools) await pool.end();
          },
        };
      });
  },
);
