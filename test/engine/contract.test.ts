import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { localEngine, memoryStore, waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { type EngineCluster, engineContract, startContractProcess } from 'waymark/testing/contract';
import { bundleChild } from '../support/bundle-child.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { claimTtl, type Deployment, openDeployed } from './support/contract-child.ts';

type StartProcess = NonNullable<EngineCluster['startProcess']>;

const child = new URL('./support/contract-child.ts', import.meta.url);

/** Starts processes one after another: when the next one starts, the claims of the one before have expired. */
function oneByOne(start: StartProcess, expire: () => Promise<void> | void): StartProcess {
  let isFirst = true;
  return async (options) => {
    if (!isFirst) await expire();
    isFirst = false;
    return await start(options);
  };
}

engineContract('local', async () => {
  const store = memoryStore();
  return {
    // The store is shared, and must outlive each of them.
    createApp: ({ work }) =>
      waymark({ store: { ...store, close: async () => {} }, engine: localEngine(), work }),
    close: async () => {},
  };
});

/** Apps and processes over a folder of their own. */
async function inFolder(store: 'sqlite' | 'file'): Promise<EngineCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-engine-'));
  const clockFile = join(folder, 'clock');
  const { advance } = sharedClock(clockFile);
  const deployment: Deployment = { engine: 'local', store, path: join(folder, 'store'), clockFile };
  return {
    createApp: (options) => openDeployed(deployment, options),
    startProcess: oneByOne(
      (options) =>
        startContractProcess(bundleChild(child), [JSON.stringify({ ...deployment, ...options })]),
      () => advance(2 * claimTtl),
    ),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

engineContract('local on SQLite', () => inFolder('sqlite'), { processes: true });
engineContract('local on files', () => inFolder('file'), { processes: true });

let postgres: TestPostgres;
let clock: PostgresClock;
let count = 0;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
});

engineContract(
  'pg-boss',
  async () => {
    const { connectionString } = clock;
    const pools: pg.Pool[] = [];
    const schema = `contract_${count++}`;
    return {
      createApp({ work }) {
        const pool = new pg.Pool({ connectionString, max: 6 });
        pool.on('error', () => {});
        pools.push(pool);
        const store = postgresStore({ pool, schema });
        return waymark({ store, engine: pgBossEngine({ pool, schema: `${schema}_queue` }), work });
      },
      startProcess: oneByOne(
        (options) => {
          const place = { store: 'postgres', connectionString, schema } as const;
          const deployment: Deployment = { engine: 'pg-boss', ...place, ...options };
          return startContractProcess(bundleChild(child), [JSON.stringify(deployment)]);
        },
        async () => {
          // The name of the connections of a process.
          await clock.settled(schema);
          await clock.drive(`${schema}_queue`);
          await clock.advance(2 * claimTtl);
        },
      ),
      async close() {
        await Promise.all(pools.map((pool) => pool.end()));
      },
    };
  },
  { dispatches: true, processes: true },
);
