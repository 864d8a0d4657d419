import type { Pool } from 'pg';
import type { Db, JobWithMetadata, PgBoss } from 'pg-boss';
import { WaymarkError } from '../../core/error.ts';
import type { PgBossEngineOptions } from './options.ts';

/** The queue of runs to execute. */
export const runQueue = 'runs';
/** The queue of runs that a schedule starts. */
export const scheduleQueue = 'scheduled-runs';

/** The longest expiry that pg-boss allows: heartbeats decide when a job expires. */
const longest = 24 * 60 * 60 - 1;

/** The connection to pg-boss, opened on first use. */
export interface Queue {
  readonly schema: string;
  /** Creates or migrates the tables and queues. With `supervise` this process also returns jobs of dead workers to the queue. */
  open(options?: { readonly supervise: boolean }): Promise<PgBoss>;
  query<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

export type FetchedJob = JobWithMetadata<object>;

/** The queues of one database. */
export function createQueue(
  options: PgBossEngineOptions,
  onError: (error: unknown) => void,
): Queue {
  const { schema = 'waymark_queue' } = options;
  let pool: Promise<Pool> | undefined;
  let accepting: Promise<PgBoss> | undefined;
  let working: Promise<PgBoss> | undefined;

  const openPool = (): Promise<Pool> => {
    pool ??= createPool(options);
    return pool;
  };
  const db: Db = {
    async executeSql(text, values) {
      return await (await openPool()).query(text, values);
    },
  };
  const start = async (supervise: boolean): Promise<PgBoss> => {
    const { PgBoss: Boss } = await loadPgBoss();
    const boss = new Boss({
      db,
      schema,
      supervise,
      schedule: supervise,
      // One worker at a time checks for dead workers; both intervals together determine how often.
      superviseIntervalSeconds: 1,
      monitorIntervalSeconds: 1,
      maintenanceIntervalSeconds: 30,
    });
    boss.on('error', onError);
    await boss.start();
    await createQueues(boss, options);
    return boss;
  };

  return {
    schema,
    open({ supervise } = { supervise: false }) {
      if (working !== undefined) return working;
      if (!supervise) {
        accepting ??= start(false).catch((error: unknown) => {
          accepting = undefined;
          throw error;
        });
        return accepting;
      }
      working = start(true).catch((error: unknown) => {
        working = undefined;
        throw error;
      });
      return working;
    },
    async query(text, values) {
      const { rows } = await (await openPool()).query(text, [...values]);
      // The caller's statement determines the type of its rows.
      return rows as never;
    },
    async close() {
      for (const opened of [accepting, working]) {
        const boss = await opened?.catch(() => undefined);
        await boss?.stop({ graceful: false, close: false }).catch(() => {});
      }
      if (options.pool === undefined) await (await pool)?.end();
    },
  };
}

async function createQueues(boss: PgBoss, options: PgBossEngineOptions): Promise<void> {
  const { heartbeat = 10_000, keepDone = 60_000 } = options;
  const common = {
    heartbeatSeconds: Math.ceil(heartbeat / 1_000),
    expireInSeconds: longest,
    deleteAfterSeconds: Math.ceil(keepDone / 1_000),
    // The store counts crashes; a run that is handed over has not failed.
    retryLimit: 1_000_000,
    retryDelay: 0,
  };
  for (const name of [runQueue, scheduleQueue]) {
    await boss.createQueue(name, common);
    await boss.updateQueue(name, common);
  }
}

async function createPool({ pool, connectionString, max = 4 }: PgBossEngineOptions): Promise<Pool> {
  if (pool !== undefined) return pool;
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw missing('pg', cause);
  });
  const own = new pg.Pool({ connectionString, max });
  // An idle connection that breaks must not end the process; the next query gets a new one.
  own.on('error', () => {});
  own.on('connect', (client) => client.on('error', () => {}));
  return own;
}

async function loadPgBoss(): Promise<typeof import('pg-boss')> {
  try {
    return await import('pg-boss');
  } catch (cause) {
    throw missing('pg-boss', cause);
  }
}

function missing(name: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `The pg-boss engine needs the package "${name}". Install it: npm install ${name}`,
    { cause },
  );
}
