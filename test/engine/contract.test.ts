import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { localEngine, memoryStore, waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { type EngineCluster, engineContract, startContractProcess } from 'waymark/testing/contract';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type Deployment, openDeployed } from './support/contract-child.ts';

const child = new URL('./support/contract-child.ts', import.meta.url);

engineContract('local', async () => {
  const store = memoryStore();
  return {
    // The store is shared, and must outlive each of them.
    createApp: ({ work }) =>
      waymark({
        store: { ...store, close: async () => {} },
        engine: localEngine(),
        work,
        claimTtl: 500,
      }),
    close: async () => {},
  };
});

/** Apps and processes over a folder of their own. */
async function inFolder(store: 'sqlite' | 'file'): Promise<EngineCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-engine-'));
  const deployment: Deployment = { engine: 'local', store, path: join(folder, 'store') };
  return {
    createApp: ({ work }) => openDeployed(deployment, work),
    startProcess: (options) =>
      startContractProcess(child, [JSON.stringify({ ...deployment, ...options })]),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

engineContract('local on SQLite', () => inFolder('sqlite'), { processes: true });
engineContract('local on files', () => inFolder('file'), { processes: true });

let postgres: TestPostgres;
let count = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

engineContract(
  'pg-boss',
  async () => {
    const { connectionString } = postgres;
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
      startProcess(options) {
        const place = { store: 'postgres', connectionString, schema } as const;
        const deployment: Deployment = { engine: 'pg-boss', ...place, ...options };
        return startContractProcess(child, [JSON.stringify(deployment)]);
      },
      async close() {
        await Promise.all(pools.map((pool) => pool.end()));
      },
    };
  },
  { dispatches: true, processes: true },
);
