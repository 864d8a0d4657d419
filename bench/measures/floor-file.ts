import { randomUUID } from 'node:crypto';
import { closeSync, fdatasyncSync, openSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Bare `node:fs`. */
export interface FileFloor {
  /** One line to a file that stays open. */
  append(line: string, isSynced: boolean): void;
  /** A file that says that the turn is accepted, a line that saves it, and the first file emptied; each under a lock. */
  turn(messages: readonly object[], isSynced: boolean): void;
  close(): void;
}

export function openFileFloor(directory: string): FileFloor {
  const file = openSync(join(directory, 'floor.jsonl'), 'a');
  const journal = join(directory, 'journal.jsonl');
  const accepted = join(directory, 'accepted.json');
  // Node can lock a file through SQLite only.
  const db = new DatabaseSync(join(directory, 'lock'));
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
      // Emptied and not removed: making a file takes up to a millisecond where the one before has just been removed.
      write(accepted, 'w', JSON.stringify({ id, at, request: messages[0] }), false);
      unlock.run();
      lock.run();
      write(journal, 'a', `${JSON.stringify({ id, at, messages })}\n`, isSynced);
      truncateSync(accepted);
      unlock.run();
    },
    close() {
      closeSync(file);
      db.close();
    },
  };
}
