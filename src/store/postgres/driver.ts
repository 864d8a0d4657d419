import type { Client, Pool, PoolClient } from 'pg';
import type { Clock } from '../../core/time.ts';
import { storeClosed } from '../rules/errors.ts';
import type { Driver, Hint } from '../sql/database/driver.ts';
import { statement } from '../sql/database/query.ts';
import { accessTo } from './access.ts';
import { give, ignore, take } from './connection.ts';
import { postgresDialect } from './dialect.ts';
import { toStoreError } from './errors.ts';
import { createFunction } from './guarded-writes.ts';
import { Listener, outgoingHints, toPayload } from './listener.ts';
import { MaintenanceConnection, type PoolParts } from './maintenance-connection.ts';
import { migrate } from './migrate.ts';
import { ShapeFunctions } from './shape-functions.ts';
import { Statements } from './statements.ts';

export interface PostgresOptions {
  /** Creates the pool, when the store owns it. */
  readonly openPool: () => Promise<Pool>;
  /** Whether the pool is the store's own to end. */
  readonly ownsPool: boolean;
  /** Whether the pool's connections go through a transaction pooler; `undefined` to find out. */
  readonly pooled: boolean | undefined;
  /** Makes a connection to the server itself, not through a pooler. */
  readonly openDirect: (() => Promise<Client>) | undefined;
  readonly schema: string;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onQuery: ((name: string) => void) | undefined;
}

// Not awaited, and worth nothing after a crash: it must not wait for the disk, nor make others wait.
const notify = statement(
  'notify',
  `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`,
);

export function postgresDriver(options: PostgresOptions): Driver {
  const { schema, clock, newId, onQuery } = options;
  const dialect = postgresDialect(schema);
  const statements = new Statements(dialect, schema, onQuery);
  const channel = `waymark ${schema}`.slice(0, 63);
  let opening: Promise<Pool> | undefined;
  let isPooled = false;
  let hasFunction = false;
  let isClosed = false;
  const sender = newId();

  const opened = (): Promise<Pool> => {
    if (isClosed) return Promise.reject(storeClosed());
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw toStoreError(error);
    });
    return opening;
  };
  const open = async (): Promise<Pool> => {
    const pool = await options.openPool();
    hearErrorsOf(pool);
    try {
      await prepare(pool);
    } catch (error) {
      await letGo(pool);
      throw error;
    }
    return pool;
  };
  const prepare = async (pool: Pool): Promise<void> => {
    const client = await take(pool);
    try {
      isPooled = options.pooled ?? (await goesThroughPooler(client));
      if (isPooled) statements.stopNaming();
      await migrate(client, schema, newId);
      hasFunction = await createFunction(client, schema);
    } finally {
      give(client);
    }
  };
  /** Ends a pool of the store's own; leaves another one as it was. */
  const letGo = async (pool: Pool): Promise<void> => {
    if (options.ownsPool) {
      await pool.end();
      return;
    }
    pool.off('error', ignore);
    pool.off('connect', hearErrors);
  };

  const listener = new Listener({
    clock,
    channel,
    sender,
    async createClient(): Promise<Client | undefined> {
      const pool = await opened();
      if (options.openDirect !== undefined) return await options.openDirect();
      // A pooler gives each transaction another connection of the server, so a LISTEN would have no effect.
      if (isPooled) return undefined;
      // A pool holds how its connections are made; one outside of it takes none away from its users.
      const { Client: Made, options: config } = pool as PoolParts;
      return new Made(config);
    },
  });

  const outgoing = outgoingHints(sender, async (payload) =>
    statements.query(await opened(), notify, [channel, payload]),
  );

  /** A connection that maintenance has for itself: no turn waits for one of its long transactions, or for a new connection instead. */
  let aside: MaintenanceConnection | undefined;
  const openedAside = async (): Promise<MaintenanceConnection> => {
    const pool = await opened();
    aside ??= new MaintenanceConnection(pool);
    return aside;
  };

  const shapes = new ShapeFunctions(schema, async () => take(await opened()));

  const common = {
    dialect,
    transactional: true,
    open: async () => {
      await opened();
    },
    tell(hints: readonly Hint[], reach?: 'process' | 'everywhere') {
      for (const hint of hints) listener.tell(hint);
      if (reach !== 'process' && !isClosed) outgoing.tell(hints);
    },
    listen: (hint: Hint, heard: () => void) => listener.listen(hint, heard),
    async close() {
      await outgoing.settled();
      await shapes.stop();
      isClosed = true;
      await listener.close();
      await aside?.end();
      const pool = await opening?.catch(ignore);
      if (pool !== undefined) await letGo(pool);
    },
  };

  const shared = {
    statements,
    schema,
    shapes,
    hasFunction: () => hasFunction,
    tell: common.tell,
    hintOf: (hints: readonly Hint[]) => [channel, toPayload(hints, sender)] as const,
  };

  return {
    ...common,
    ...accessTo({ opened, ...shared }),
    forMaintenance: {
      ...common,
      ...accessTo({ opened: openedAside, ...shared, isByIndex: true }),
    },
  };
}

function hearErrorsOf(pool: Pool): void {
  // An idle connection that breaks must not end the process; the next query gets a new one.
  pool.on('error', ignore);
  // Nor one that breaks just before the caller gets it.
  pool.on('connect', hearErrors);
}

function hearErrors(client: PoolClient): void {
  client.on('error', ignore);
}

/**
 * Whether something between us and the server hands out the server's connections: PgBouncer, Supavisor, RDS Proxy. Such a
 * pooler gives its clients its own keys for cancelling, so the process id that came with the connection is not that of
 * the process which answers. A connection without a key counts as pooled, which is slower but always right.
 */
async function goesThroughPooler(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return (client as Keyed).processID !== rows[0]?.pid;
}

/** Fields of a connection that its types leave out. */
type Keyed = PoolClient & { readonly processID?: number | null };
