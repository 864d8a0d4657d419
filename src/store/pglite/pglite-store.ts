import { createKeyedEmitter } from '../../core/async/emitter.ts';
import { invalid } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { systemClock } from '../../core/time.ts';
import { accessTo } from '../postgres/access.ts';
import { give, take } from '../postgres/connection.ts';
import { postgresDialect } from '../postgres/dialect.ts';
import { toStoreError } from '../postgres/errors.ts';
import { migrate } from '../postgres/migrate.ts';
import { checkSchema, type PostgresStoreOptions } from '../postgres/postgres-store.ts';
import { ShapeFunctions } from '../postgres/shape-functions.ts';
import { Statements } from '../postgres/statements.ts';
import { storeClosed } from '../rules/errors.ts';
import { type Driver, type Hint, hintKey } from '../sql/database/driver.ts';
import { type SqlStore, storeOver } from '../sql/sql-store.ts';
import { connectionsTo, type PgliteDatabase } from './connections.ts';

/** Options of `pgliteStore`, which mean the same as those of `postgresStore`. */
export type PgliteStoreOptions = Pick<PostgresStoreOptions, Names>;

type Names = 'schema' | 'encryption' | 'eventsTtl' | 'clock' | 'newId' | 'onQuery';

const optionNames: OptionNames<PgliteStoreOptions> = {
  onQuery: true,
  schema: true,
  encryption: true,
  eventsTtl: true,
  clock: true,
  newId: true,
};

/**
 * A store in a PGlite database, which is Postgres inside this process: a schema of your `new PGlite(…)`, which you close. One process can use it.
 */
export function pgliteStore(db: PgliteDatabase, options: PgliteStoreOptions = {}): SqlStore {
  const { schema = 'waymark', encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  checkOptions(options, optionNames, 'pgliteStore()');
  checkSchema(schema);
  if (typeof db?.query !== 'function' || typeof db.transaction !== 'function') {
    throw invalid(
      'pgliteStore() needs a database: pass `new PGlite(…)` of "@electric-sql/pglite".',
    );
  }
  const statements = new Statements(postgresDialect(schema), schema, onQuery);
  const driver = pgliteDriver(db, { schema, newId, statements });
  return storeOver({ name: 'pglite', driver, encryption, clock, newId, eventsTtl });
}

function pgliteDriver(
  db: PgliteDatabase,
  { schema, newId, statements }: { schema: string; newId: () => string; statements: Statements },
): Driver {
  const emitter = createKeyedEmitter(hintKey);
  const connections = connectionsTo(db);
  let opening: Promise<void> | undefined;
  let isClosed = false;

  const prepare = async (): Promise<void> => {
    const client = await take(connections);
    try {
      await migrate(client, schema, newId);
    } catch (error) {
      opening = undefined;
      throw toStoreError(error);
    } finally {
      give(client);
    }
  };
  const opened = async () => {
    if (isClosed) throw storeClosed();
    opening ??= prepare();
    await opening;
    return connections;
  };
  const tell = (hints: readonly Hint[]): void => {
    for (const hint of hints) emitter.emit(hint);
  };
  const shapes = new ShapeFunctions(schema, () => take(connections));
  // Statements take no round trip, so guarded writes need no functions in the database.
  const local = { hasFunction: () => false, shapes, hintOf: () => ['', ''] as const, tell };
  return {
    dialect: postgresDialect(schema),
    isLocal: true,
    transactional: true,
    open: async () => {
      await opened();
    },
    ...accessTo({ opened, statements, schema, ...local }),
    tell,
    listen: (hint, listener) => emitter.subscribe(hint, listener),
    async close() {
      isClosed = true;
    },
  };
}
