import type { PoolClient } from 'pg';
import type { Connections } from '../postgres/access.ts';

/** The parts of a `PGlite` that the store uses. */
export interface PgliteDatabase extends PgliteQueries {
  /** Runs a transaction, for which all other queries wait. */
  transaction<Result>(work: (transaction: PgliteTransaction) => Promise<Result>): Promise<Result>;
}

interface PgliteQueries {
  /** Runs a statement with parameters. */
  query(text: string, values?: unknown[], options?: PgliteOptions): Promise<PgliteRows>;
  /** Runs several statements. */
  exec(text: string, options?: PgliteOptions): Promise<PgliteRows[]>;
}

type PgliteTransaction = PgliteQueries & { rollback(): Promise<void> };
type PgliteRows = { rows: unknown[] };

interface PgliteOptions {
  rowMode?: 'array' | 'object';
  parsers?: Record<number, (text: string) => unknown>;
  serializers?: Record<number, (value: unknown) => string>;
}

/** By the numbers of Postgres' types: values as `pg` gives them to the store. */
const toBytes = (text: string): Buffer => Buffer.from(text.slice(2), 'hex');
const parsers = { 16: String, 17: toBytes, 20: Number, 21: Number, 23: Number, 114: String };
const serializers = { 16: String, 114: String };

/** A database as connections that `pg` would make. A transaction of one of them is one of PGlite, so that no query of the app gets into it. */
export function connectionsTo(db: PgliteDatabase): Connections {
  return { connect: async () => connect(db), query: (config) => connect(db).query(config) };
}

function connect(db: PgliteDatabase): PoolClient {
  let open: OpenTransaction | undefined;
  const run = async ({ text, values, rowMode }: Query): Promise<PgliteRows> => {
    if (text.startsWith('BEGIN')) {
      open = await begin(db);
      const settings = text.indexOf(';') + 1;
      return settings === 0 ? noRows : await run({ text: text.slice(settings) });
    }
    if (text === 'COMMIT' || text === 'ROLLBACK') {
      const ending = open;
      open = undefined;
      await ending?.end(text);
      return noRows;
    }
    const on = open?.transaction ?? db;
    const options = { parsers, serializers, ...(rowMode === 'array' && { rowMode }) };
    if (values !== undefined) return await on.query(text, values, options);
    return (await on.exec(text, options)).at(-1) ?? noRows;
  };
  const client = {
    query: (given: Query | string, values?: unknown[]) =>
      run(typeof given === 'string' ? { text: given, values } : given),
    on: () => client,
    off: () => client,
    // One that was left in a transaction by an error.
    release: () => void open?.end('ROLLBACK').catch(() => {}),
  };
  // The members of a connection that the store uses.
  return client as unknown as PoolClient;
}

const noRows: PgliteRows = { rows: [] };

interface Query {
  readonly text: string;
  readonly values?: unknown[] | undefined;
  readonly rowMode?: 'array';
}

interface OpenTransaction {
  readonly transaction: PgliteTransaction;
  end(how: 'COMMIT' | 'ROLLBACK'): Promise<void>;
}

/** Begins a transaction that stays open until it is ended. */
async function begin(db: PgliteDatabase): Promise<OpenTransaction> {
  const begun = Promise.withResolvers<PgliteTransaction>();
  const ended = Promise.withResolvers<void>();
  const done = db.transaction(async (transaction) => {
    begun.resolve(transaction);
    await ended.promise;
  });
  done.catch(begun.reject);
  const transaction = await begun.promise;
  const end: OpenTransaction['end'] = async (how) => {
    if (how === 'ROLLBACK') await transaction.rollback();
    ended.resolve();
    await done;
  };
  return { transaction, end };
}
