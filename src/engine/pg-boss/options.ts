import type { Pool } from 'pg';

/** Where the queue is: in the database of the app's Postgres store, over a pool or a connection string. */
type Source =
  | {
      readonly connectionString: string;
      /** Connections of the engine's own pool. @default 4 */
      readonly max?: number;
      readonly pool?: never;
    }
  | { readonly pool: Pool; readonly connectionString?: never; readonly max?: never };

/** How runs are queued and worked on. */
export type PgBossEngineOptions = Source & {
  /** The schema of pg-boss; made when it is not there. @default 'waymark_queue' */
  readonly schema?: string;
  /** Runs that this process works on at a time. @default 10 */
  readonly slots?: number;
  /** Only runs of these agents; others are left to other workers. @default all that the app defines */
  readonly agents?: readonly string[];
  /** Times that the process of a run may die without progress before the run is given up. @default 3 */
  readonly attempts?: number;
  /** Milliseconds for which a run is left to workers of its agent's version. @default 30000 */
  readonly versionGraceMs?: number;
  /** Runs that may wait; more are refused with RESOURCE_EXHAUSTED. @default 10000 */
  readonly maxWaiting?: number;
  /** Seconds without a sign of life after which the work of a dead worker is given to another; at least 10. @default 10 */
  readonly heartbeatSeconds?: number;
  /** Seconds for which the queue remembers what is done. @default 60 */
  readonly keepDoneSeconds?: number;
};
