import pg from 'pg';
import { pgBossEngine } from '../../../src/engine/pg-boss/index.ts';
import { type App, localEngine, waymark } from '../../../src/index.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { serveContractProcess } from '../../../src/testing/engine-contract/contract-process.ts';
import { sharedClock } from '../../support/shared-clock.ts';

/** How long a claim of a process holds: longer than it stands still on a busy machine. */
export const claimTtl = 60_000;

/** Which deployment a process of the contract belongs to. */
export type Deployment = { readonly attempts?: number } & (
  | {
      readonly engine: 'local';
      readonly store: 'sqlite' | 'file';
      readonly path: string;
      /** The file of its shared clock. */
      readonly clockFile: string;
    }
  | {
      readonly engine: 'local' | 'pg-boss';
      readonly store: 'postgres';
      readonly connectionString: string;
      readonly schema: string;
    }
);

/** An app of a deployment. */
export function openDeployed(
  deployment: Deployment,
  { work, ...claims }: { readonly work: boolean; readonly claimTtl?: number },
): App {
  const attempts = deployment.attempts === undefined ? {} : { attempts: deployment.attempts };
  const common = { work, ...claims, onError: () => {} };
  if (deployment.store !== 'postgres') {
    const { path, clockFile } = deployment;
    const { clock } = sharedClock(clockFile);
    const open = deployment.store === 'sqlite' ? sqliteStore : fileStore;
    const store = open(path, { clock });
    return waymark({ ...common, store, clock, engine: localEngine(attempts) });
  }
  const { connectionString, schema } = deployment;
  const pool = new pg.Pool({ connectionString, max: 6, application_name: schema });
  pool.on('error', () => {});
  const engine =
    deployment.engine === 'local'
      ? localEngine(attempts)
      : pgBossEngine({ pool, schema: `${schema}_queue`, ...attempts });
  return waymark({ ...common, store: postgresStore({ pool, schema }), engine });
}

const [given] = process.argv.slice(2);
if (process.send !== undefined && given !== undefined) {
  await serveContractProcess(
    openDeployed(JSON.parse(given) as Deployment, { work: true, claimTtl }),
  );
}
