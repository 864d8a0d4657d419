import type { Connection } from './connection.ts';
import { runInThread } from './thread.ts';

// Of the write-ahead log, in pages: small enough that writing it back never holds the thread for more than a moment.
const checkpointEvery = 500;

// Transactions during one read after which the log is too long for a turn to write it back.
const many = 50;

// How often the log is written back after one read.
const rounds = 3;

/** What keeps the log from being written back in one go by the first turn after a long read. */
export interface LongReads {
  /** Runs a read that may take long. The log that has grown meanwhile is written back in a thread. */
  during<Result>(read: () => Promise<Result>): Promise<Result>;
  /** Counts a transaction that has been written. */
  wrote(): void;
}

/** Lets the connection write its log back now and then, as part of a transaction. */
export function writeBackOften(db: Connection): void {
  db.exec(`PRAGMA wal_autocheckpoint = ${checkpointEvery}`);
}

/**
 * While one state of the file is read, SQLite cannot write back what was added to the log since. The first transaction after a long read would
 * write back all of it, and wait for the disk.
 */
export function createLongReads(db: Connection): LongReads {
  const { file } = db;
  let readers = 0;
  let writes = 0;
  let isWritingBack = false;

  /** Writes the log back, and again if that took so long that it has grown. */
  const writeBack = async (): Promise<void> => {
    isWritingBack = true;
    for (let left = rounds; left > 0 && writes >= many && db.isOpen; left--) {
      writes = 0;
      await runInThread(file, ['PRAGMA wal_checkpoint(PASSIVE)'], { writes: true });
    }
    isWritingBack = false;
    // Another read may have become long since.
    if (db.isOpen && (readers === 0 || writes < many)) writeBackOften(db);
  };

  return {
    async during(read) {
      readers++;
      try {
        return await read();
      } finally {
        readers--;
        if (readers === 0 && !isWritingBack) {
          if (writes >= many) await writeBack();
          if (readers === 0) writes = 0;
        }
      }
    },
    wrote() {
      if (readers === 0 && !isWritingBack) return;
      writes++;
      if (writes === many) db.exec('PRAGMA wal_autocheckpoint = 0');
    },
  };
}
