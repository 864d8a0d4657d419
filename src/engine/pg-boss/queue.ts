import type { Pool } from 'pg';
import type { Db, JobWithMetadata, PgBoss } from 'pg-boss';
import { failedPrecondition, type WaymarkError } from '../../core/error.ts';
import type { PgBossEngineOptions } from './options.ts';

/** The queue of runs to execute. */
export const runQueue = 'runs';
/** The queue of runs that a schedule starts. */
export const scheduleQueue = 'scheduled-runs';

/** The longest expiry that pg-boss allows: heartbeats decide when a job expires. */
const longest = 24 * 60 * 60 - 1;

export type Queue = ReturnType<typeof createQueue>;

export type FetchedJob = JobWithMetadata<object>;

/** The connection to pg-boss, opened on first use. */
export function createQueue(options: PgBossEngineOptions, onError: (error: unknown) => void) {
  const { schema = 'waymark_queue' } = options;
  let pool: Promise<Pool> | undefined;
  /** By whether they supervise. */
  const opened = new Map<boolean, Promise<PgBoss>>();
  let isClosed = false;
  // A check that pg-boss was making meanwhile fails when the pool is closed under it, which is of no interest.
  const report = (error: unknown): void => {
    if (!isClosed) onError(error);
  };

  const openPool = (): Promise<Pool> => {
    pool ??= createPool(options);
    return pool;
  };
  const db: Db = {
    async executeSql(text, values) {
      return await (await openPool()).query(text, values);
    },
  };
  const start = async (supervise: boolean, retries = 3): Promise<PgBoss> => {
    const { PgBoss: Boss } = await import('pg-boss').catch((cause: unknown) => {
      throw missing('pg-boss', cause);
    });
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
    boss.on('error', report);
    try {
      await boss.start();
      await createQueues(boss, options);
      return boss;
    } catch (error) {
      await boss.stop({ graceful: false, close: false }).catch(() => {});
      if (retries === 0 || !isCreateRace(error)) throw error;
      return await start(supervise, retries - 1);
    }
  };

  return {
    schema,
    /** Creates or migrates the tables and queues. With `supervise` this process also returns jobs of dead workers to the queue. */
    open({ supervise } = { supervise: false }): Promise<PgBoss> {
      const known = opened.get(true) ?? opened.get(supervise);
      if (known !== undefined) return known;
      const opening = start(supervise).catch((error: unknown) => {
        opened.delete(supervise);
        throw error;
      });
      opened.set(supervise, opening);
      return opening;
    },
    // The caller's statement determines the type of its rows.
    async query<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
      const { rows } = await (await openPool()).query(text, [...values]);
      return rows;
    },
    async close(): Promise<void> {
      for (const each of opened.values()) {
        const boss = await each.catch(() => undefined);
        await boss?.stop({ graceful: false, close: false }).catch(() => {});
      }
      isClosed = true;
      if (options.pool === undefined) await (await pool)?.end();
    },
  };
}

/**
 * Whether another process created the same tables at the same moment, as when a server and its workers start over an empty
 * database. Postgres reports it as an existing schema or table, a unique violation in its catalog, or a deadlock.
 */
function isCreateRace(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return ['23505', '42P06', '42P07', '40P01'].includes(String(code));
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

function missing(name: string, cause: unknown): WaymarkError {
  return failedPrecondition(
    `The pg-boss engine needs the package "${name}". Install it: npm install ${name}`,
    { cause },
  );
}
