import type { Pool } from 'pg';
import { checkOptions, type OptionNames } from '../../core/options.ts';

/** Where the queue is: in the database of the app's Postgres store, over a pool or a connection string. */
type Source =
  | {
      readonly connectionString: string;
      /** Connections of the engine's own pool. @default 4 */
      readonly max?: number;
      readonly pool?: never;
    }
  | { readonly pool: Pool; readonly connectionString?: never; readonly max?: never };

/** Options of the pg-boss engine. */
export type PgBossEngineOptions = Source & {
  /** The schema of pg-boss; created if it does not exist. @default 'waymark_queue' */
  readonly schema?: string;
  /** Number of runs that this process executes concurrently. @default 10 */
  readonly slots?: number;
  /** Only runs of these agents; others are left to other workers. @default all that the app defines */
  readonly agents?: readonly string[];
  /** How often the process of a run may die without progress before the run moves to the dead-letter queue. @default 3 */
  readonly attempts?: number;
  /** Milliseconds for which only workers with the same agent version may take a run. @default 30000 */
  readonly versionGrace?: number;
  /** Maximum number of waiting runs; further runs are rejected with RESOURCE_EXHAUSTED. @default 10000 */
  readonly maxWaiting?: number;
  /** Milliseconds without a heartbeat after which another worker takes over a run; at least 10000. @default 10000 */
  readonly heartbeat?: number;
  /** Milliseconds for which the queue keeps completed jobs, in whole seconds. @default 60000 */
  readonly keepDone?: number;
};

export function checkEngineOptions(options: PgBossEngineOptions): void {
  checkOptions(options, optionNames, 'pgBossEngine()', {
    versionGraceMs: 'versionGrace',
    heartbeatSeconds: 'heartbeat',
    keepDoneSeconds: 'keepDone',
  });
}

const optionNames: OptionNames<PgBossEngineOptions> = {
  connectionString: true,
  max: true,
  pool: true,
  schema: true,
  slots: true,
  agents: true,
  attempts: true,
  versionGrace: true,
  maxWaiting: true,
  heartbeat: true,
  keepDone: true,
};
