import { randomUUID } from 'node:crypto';
import { closeSync, fdatasyncSync, openSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Bare `node:fs`. */
export interface FileFloor {
  /** One line to a file that stays open. */
  append(line: string, isSynced: boolean): void;
  /** A file that says that the turn is accepted, a line that saves it, and the first file cut to a byte; each under a lock. */
  turn(messages: readonly object[], isSynced: boolean): void;
  close(): void;
}

export function openFileFloor(directory: string): FileFloor {
  const file = openSync(join(directory, 'floor.jsonl'), 'a');
  const journal = join(directory, 'journal.jsonl');
  // Written over and cut to a byte: making a file takes up to a millisecond where one has just been removed, and what is put into an
  // empty one is written out when it is closed.
  const accepted = join(directory, 'accepted.json');
  closeSync(openSync(accepted, 'a'));
  // Node can lock a file through SQLite only.
  const db = new DatabaseSync(join(directory, 'lock'));
  db.exec('PRAGMA journal_mode = MEMORY');
  const lock = db.prepare('BEGIN IMMEDIATE');
  const unlock = db.prepare('ROLLBACK');
  const write = (path: string, flags: string, text: string, isSynced: boolean): void => {
    const opened = openSync(path, flags);
    writeSync(opened, text);
    if (isSynced) fdatasyncSync(opened);
    closeSync(opened);
  };
  return {
    append(line, isSynced) {
      writeSync(file, `${line}\n`);
      if (isSynced) fdatasyncSync(file);
    },
    turn(messages, isSynced) {
      const id = randomUUID();
      const at = Date.now();
      lock.run();
      write(accepted, 'r+', JSON.stringify({ id, at, request: messages[0] }), false);
      unlock.run();
      lock.run();
      write(journal, 'a', `${JSON.stringify({ id, at, messages })}\n`, isSynced);
      truncateSync(accepted, 1);
      unlock.run();
    },
    close() {
      closeSync(file);
      db.close();
    },
  };
}
