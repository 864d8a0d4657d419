import { accessSync, constants, statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { failedPrecondition, type WaymarkError } from '../../core/error.ts';
import { letOthersRun } from '../../core/platform.ts';
import { backoff, systemClock } from '../../core/time.ts';
import { storeFault } from '../rules/errors.ts';

const busyDelays = { baseMs: 1, maxMs: 10 };

/** One writer at a time over all processes that use a directory. */
export interface Lock {
  /**
   * Runs `section` under the lock. It is synchronous: no other code of this thread runs within it, and a
   * process holds the lock only while it is really at work. With `orWithout`, for readers, it runs without the lock
   * (`isHeld` is false) in a directory that cannot be written.
   */
  hold<Result>(
    section: (isHeld: boolean) => Result,
    options?: { readonly orWithout?: boolean },
  ): Promise<Result>;
  close(): void;
}

interface Handle {
  readonly database: DatabaseSync;
  readonly begin: StatementSync;
  readonly end: StatementSync;
  readonly inode: bigint;
}

// SQLite's code for a lock that another connection holds, and its and the system's for a file that cannot be written.
const busy = 5;
const unusable: readonly unknown[] = [8, 14, 'EACCES', 'EPERM', 'EROFS'];

/** How often it is tried at once, before waiting for milliseconds. */
const quickTries = 20;

/**
 * The kernel's own file lock, reached through Node's SQLite: `BEGIN IMMEDIATE` on a database that stays empty. The kernel
 * frees it when its holder dies, however it dies: there are no stale locks, and no liveness checks.
 */
export function createLock(path: string, { timeout }: { readonly timeout: number }): Lock {
  let handle: Handle | undefined;
  let isClosed = false;

  const drop = (): void => {
    handle?.database.close();
    handle = undefined;
  };

  const begin = (): Handle | 'busy' | 'unusable' => {
    if (isClosed) throw closed();
    try {
      handle ??= openHandle(path);
      handle.begin.run();
    } catch (error) {
      if (codeOf(error) === busy) return 'busy';
      drop();
      if (unusable.includes(codeOf(error))) return 'unusable';
      throw error;
    }
    if (inodeOf(path) === handle.inode) return handle;
    // The file was removed, so this lock excludes no other process. Start again with the current file.
    drop();
    return 'busy';
  };

  return {
    close() {
      isClosed = true;
      drop();
    },
    async hold(section, { orWithout = false } = {}) {
      for (let quick = 0, waited = 0, tries = 1; ; ) {
        const held = begin();
        if (held === 'unusable') {
          if (orWithout) return section(false);
          throw cannotLock();
        }
        if (held !== 'busy') {
          try {
            return section(true);
          } finally {
            held.end.run();
          }
        }
        // The holder is usually done within a fraction of a millisecond.
        if (quick++ < quickTries) {
          await letOthersRun();
          continue;
        }
        if (waited >= timeout) throw heldTooLong(timeout);
        // Real time, whatever clock the store was given, because another process holds the lock.
        const pause = backoff(tries++, busyDelays);
        await systemClock.sleep(pause);
        waited += pause;
      }
    },
  };
}

function openHandle(path: string): Handle {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // SQLite opens a file without write permission for reading, and then locks nothing.
    accessSync(path, constants.W_OK);
    // Nothing is ever written: a commit would have to wait for processes that try to begin, and could fail.
    database.exec('PRAGMA journal_mode = MEMORY');
    const begin = database.prepare('BEGIN IMMEDIATE');
    const end = database.prepare('ROLLBACK');
    return { database, begin, end, inode: inodeOf(path) ?? 0n };
  } catch (error) {
    database.close();
    throw error;
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return 'errcode' in error ? error.errcode : 'code' in error ? error.code : undefined;
}

function cannotLock(): WaymarkError {
  return storeFault(
    'PERMISSION_DENIED',
    'The file store cannot write its file "lock": it can be read, but not written. Check the permissions of its directory.',
  );
}

function closed(): WaymarkError {
  return failedPrecondition('The file store has been closed. Open another one.');
}

function heldTooLong(timeout: number): WaymarkError {
  return storeFault(
    'UNAVAILABLE',
    `Another process has held the lock of the file store for more than ${timeout} ms. Is one stopped in a debugger?`,
  );
}
