import { letOthersRun } from '../../core/platform.ts';
import { backoff, type Clock, systemClock } from '../../core/time.ts';
import { noSharedTransactions, storeClosed, toReadError } from '../rules/errors.ts';
import type { Driver, Hint } from '../sql/database/driver.ts';
import type { Plan } from '../sql/database/query.ts';
import { limitHeartbeats, limiting } from '../sql/runs/run-writes.ts';
import { changeMark, createChangeWatch } from './change-watch.ts';
import { checkStatements, faultsIn } from './check.ts';
import { Connection, type Synchronous } from './connection.ts';
import { databaseFiles } from './database-files.ts';
import { sqliteDialect } from './dialect.ts';
import { isBusy, stillBusy, toStoreError } from './errors.ts';
import { checkSums, formatOf, upgradeSqlite } from './migrate.ts';
import { newSteps, steps } from './schema.ts';
import { runInThread } from './thread.ts';

const busyDelays = { baseMs: 1, maxMs: 20 };

export interface SqliteOptions {
  readonly path: string | URL;
  readonly durability: 'normal' | 'full';
  readonly maxSize: number | undefined;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onQuery: ((name: string) => void) | undefined;
}

// A writer that is still in the way after this long is not just busy.
const patience = 30_000;

// Free pages that are given back at a time: few enough that turns do not wait for long.
const vacuumPages = 64;

// So few pages of the write-ahead log that writing them back never holds the thread for more than a moment.
const writeBackPages = 500;

/** Writes the log back as far as no reader needs it. */
const writeBack = 'PRAGMA wal_checkpoint(PASSIVE)';

// Transactions during a long read after which the log is too long for a turn to write it back.
const manyWrites = 50;

export function sqliteDriver(options: SqliteOptions): Driver {
  const { clock, durability } = options;
  const path = String(options.path);
  const paths = databaseFiles(options.path);
  let opening: Promise<void> | undefined;
  let connection: Connection | undefined;
  let longReads = 0;
  let writes = 0;
  let isClosed = false;
  const watch = createChangeWatch(clock, {
    version: () => connection && dataVersion(connection),
    mark: (hint) => connection && markOf(connection, hint),
  });

  const opened = async (): Promise<Connection> => {
    opening ??= open();
    await opening;
    if (connection === undefined) throw storeClosed();
    return connection;
  };

  const open = async (): Promise<void> => {
    if (isClosed) throw storeClosed();
    let made: Connection | undefined;
    try {
      made = new Connection(options.path, options);
      const own = made;
      await retry(() => prepare(own, options));
      connection = own;
    } catch (error) {
      made?.close();
      opening = undefined;
      throw toStoreError(error, path);
    }
  };

  /** Tries again, with the thread free in between, while another process is in the way. */
  const retry = <Result>(attempt: () => Result): Result | Promise<Result> => {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
    return retryLater(attempt);
  };

  const retryLater = async <Result>(attempt: () => Result): Promise<Result> => {
    let waited = 0;
    for (let tries = 1; ; tries++) {
      const pause = backoff(tries, busyDelays);
      // Real time: a lock is held by another process, which knows nothing of an app's clock.
      await systemClock.sleep(pause);
      waited += pause;
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (waited >= patience) throw stillBusy(path, waited, error);
      }
    }
  };

  const transaction = async <Result>(
    begin: 'BEGIN' | 'BEGIN IMMEDIATE',
    plan: () => Plan<Result>,
    level: Synchronous,
  ): Promise<Result> => {
    const db = connection ?? (await opened());
    try {
      return await retry(() => {
        db.synchronous = level;
        const result = db.transaction(begin, plan);
        if (begin === 'BEGIN IMMEDIATE') writes++;
        return result;
      });
    } catch (error) {
      throw toStoreError(error, path);
    }
  };

  /**
   * Runs a read that may take long. Until it ends, SQLite cannot write back what turns add to the log, and the first turn after it would
   * write back all of that and wait for the disk: if it is much, a thread does it before that.
   */
  const duringLongRead = async <Result>(
    db: Connection,
    read: () => Promise<Result>,
  ): Promise<Result> => {
    if (longReads++ === 0) {
      writes = 0;
      writeBackEvery(db, 0);
    }
    try {
      return await read();
    } finally {
      if (longReads === 1 && writes >= manyWrites && db.isOpen) {
        await runInThread(db.file, [writeBack], { writes: true });
      }
      if (--longReads === 0 && db.isOpen) writeBackEvery(db, writeBackPages);
    }
  };

  return {
    dialect: sqliteDialect,
    paths,
    isLocal: true,
    open: async () => {
      await opened();
    },
    async read(plan) {
      try {
        return await transaction('BEGIN', plan, 'NORMAL');
      } catch (error) {
        throw toReadError(error);
      }
    },
    write: async (plan, { durable = true, within, hints = [] } = {}) => {
      if (within !== undefined) throw noSharedTransactions();
      const level = durability === 'full' && durable ? 'FULL' : 'NORMAL';
      const result = await limiting(
        () => transaction('BEGIN IMMEDIATE', plan, level),
        () => transaction('BEGIN IMMEDIATE', limitHeartbeats, 'NORMAL'),
      );
      for (const hint of hints) watch.tell(hint);
      return result;
    },
    checksAside: true,
    async check(signal) {
      const db = connection ?? (await opened());
      const { file } = db;
      const apart =
        file === ''
          ? undefined
          : await duringLongRead(db, () =>
              runInThread(file, [...checkStatements, writeBack], { signal, writes: true }),
            );
      return faultsIn(apart ?? (await retry(() => checkStatements.map((sql) => db.all(sql)))));
    },
    async scrub() {
      const db = connection ?? (await opened());
      const freePages = (): number => Number(db.get('PRAGMA freelist_count')?.freelist_count);
      // A file that another program has rebuilt without `auto_vacuum` keeps its free pages, which are overwritten.
      for (let free = freePages(), before = free + 1; free > 0 && free < before; ) {
        before = free;
        await retry(() => db.exec(`PRAGMA incremental_vacuum(${vacuumPages})`));
        await letOthersRun();
        free = freePages();
      }
      await retry(() => {
        // A reader in another process keeps the log from being emptied; it says so in a column.
        if (db.get('PRAGMA wal_checkpoint(TRUNCATE)')?.busy === 1) throw busyLog;
      });
    },
    tell: (hints) => {
      for (const hint of hints) watch.tell(hint);
    },
    listen: (hint, listener) => watch.listen(hint, listener),
    async close() {
      isClosed = true;
      await opening?.catch(() => {});
      watch.close();
      connection?.close();
      connection = undefined;
    },
  };
}

// Has the shape of what SQLite throws, so that it is waited for in the same way.
const busyLog = Object.assign(new Error('The log is being read.'), { errcode: 5 });

// SQLite's number for this mode of `auto_vacuum`.
const incremental = 2;

/** Sets the connection up and brings the tables up to date. */
function prepare(db: Connection, options: SqliteOptions): void {
  // Only takes effect before the first table exists, and writes to the file each time.
  if (db.get('PRAGMA auto_vacuum')?.auto_vacuum !== incremental) {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  }
  db.exec('PRAGMA journal_mode = WAL');
  // Deleted content must not stay readable in free pages.
  db.exec('PRAGMA secure_delete = ON');
  writeBackEvery(db, writeBackPages);
  db.synchronous = 'FULL';
  // Read first: a database that is up to date is opened without writing.
  const path = String(options.path);
  if (db.run(formatOf()) === steps.length) db.run(checkSums(path, steps.length, true));
  else {
    const { newId } = options;
    db.transaction('BEGIN IMMEDIATE', function* () {
      const isNew = (yield* formatOf()) === undefined;
      yield* upgradeSqlite({ path, newId, withSums: true, steps: isNew ? newSteps : steps });
    });
  }
  if (options.maxSize !== undefined) limitSize(db, options.maxSize);
}

/** Lets the connection write its log back as part of a transaction, once it has so many pages; 0: never. */
function writeBackEvery(db: Connection, pages: number): void {
  db.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
}

function limitSize(db: Connection, bytes: number): void {
  const pageSize = Number(db.get('PRAGMA page_size')?.page_size ?? 4096);
  db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(bytes / pageSize))}`);
}

function dataVersion(db: Connection): number | undefined {
  try {
    const version = db.get('PRAGMA data_version')?.data_version;
    return typeof version === 'number' ? version : undefined;
  } catch {
    return undefined;
  }
}

function markOf(db: Connection, hint: Hint): string | undefined {
  try {
    return db.run(changeMark(hint));
  } catch {
    return undefined;
  }
}
