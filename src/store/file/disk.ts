import {
  closeSync,
  copyFileSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { codeOf, isWaymarkError, type Status, type WaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import { trashFolder } from './layout.ts';

/** The size and age of a file or folder. */
export interface FileStat {
  readonly size: number;
  /** When it was last changed, in milliseconds. */
  readonly changedAt: number;
}

/** An open file, for reading at any place. */
export interface FileReader {
  size(): number;
  /** Reads bytes; fewer where the file ends. */
  read(from: number, length: number): Buffer;
}

/**
 * The files below one directory, by names relative to it, which errors show. Only the holder of the lock writes. A write survives
 * the death of the process at once, and a power cut after {@link Disk.sync}.
 */
export class Disk {
  readonly root: string;
  /** Counts the holds of the lock. Within one hold, no other process changes files. */
  hold = 0;
  /** Whether this hold may write. */
  isWritable = false;
  readonly #durable: boolean;
  /** Files and folders that are not on the disk yet. */
  #unsynced = new Set<string>();

  constructor(root: string, { durable }: { readonly durable: boolean }) {
    this.root = root;
    this.#durable = durable;
  }

  stat(name: string): FileStat | undefined {
    return this.#try(name, (path) => {
      const stat = statSync(path, { throwIfNoEntry: false });
      return stat && { size: stat.size, changedAt: stat.mtimeMs };
    });
  }

  /** Reads an existing file; `undefined` when there is none. */
  open<Result>(name: string, use: (file: FileReader) => Result): Result | undefined {
    const fd = this.#try(name, (path) => ifThere(() => openSync(path, 'r')));
    if (fd === undefined) return undefined;
    try {
      return use({
        size: () => this.#try(name, () => fstatSync(fd).size),
        read: (from, length) => this.#try(name, () => read(fd, from, length)),
      });
    } finally {
      closeSync(fd);
    }
  }

  readText(name: string): string | undefined {
    // An error for a missing file costs more than this check.
    if (this.stat(name) === undefined) return undefined;
    return this.open(name, ({ size, read }) => read(0, size()).toString('utf8'));
  }

  /** The names in a folder, sorted; none when it does not exist. */
  list(folder: string): readonly string[] {
    return this.#try(folder, (path) => ifThere(() => readdirSync(path).sort()) ?? []);
  }

  /**
   * Makes a file of `size` bytes (`undefined`: there is none, nor need its folder be there) its first `at` bytes followed by `data`. When
   * writing fails, as on a full disk, `rest` follows the first bytes.
   */
  append(
    name: string,
    data: Buffer,
    options: {
      readonly durable: boolean;
      readonly at?: number;
      readonly size?: number | undefined;
      readonly rest?: Buffer;
    },
  ): void {
    const { at = 0, size, durable, rest = Buffer.alloc(0) } = options;
    const isNew = size === undefined;
    if (isNew && this.stat(dirname(name)) === undefined) this.makeFolder(dirname(name));
    this.#try(name, (path) => {
      const fd = openUnderLock(path, name, isNew ? 'wx' : 'r+');
      try {
        writeAll(fd, data, at);
        if (!isNew && size > at + data.length) ftruncateSync(fd, at + data.length);
      } catch (error) {
        ftruncateSync(fd, at);
        tryTo(() => writeAll(fd, rest, at));
        throw error;
      } finally {
        closeSync(fd);
        if (durable) this.note(name);
      }
    });
  }

  /** Replaces a whole file, or creates it, in one step. */
  replace(name: string, pieces: Iterable<Buffer | string>): void {
    this.makeFolder(dirname(name));
    this.#replace(name, (temporary) => {
      const fd = openSync(temporary, 'w');
      try {
        writeAll(fd, Buffer.concat(Array.from(pieces, (piece) => Buffer.from(piece))), 0);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Moves a file or folder, in one step. */
  rename(from: string, to: string): void {
    this.makeFolder(dirname(to));
    this.#try(to, (path) => renameSync(this.#path(from), path));
    this.note(dirname(from));
    this.note(dirname(to));
  }

  /** Gives a file a second name, or copies it where the file system has no links. */
  link(from: string, to: string): void {
    this.makeFolder(dirname(to));
    this.#replace(to, (temporary) => {
      try {
        linkSync(this.#path(from), temporary);
      } catch {
        copyFileSync(this.#path(from), temporary);
        this.note(to);
      }
    });
  }

  /** Removes a file; after a power cut it may be back. */
  unlink(name: string): void {
    this.#try(name, (path) => ifThere(() => unlinkSync(path)));
  }

  /** Removes a file or a folder with its content. */
  remove(name: string): void {
    this.#try(name, (path) => rmSync(path, { recursive: true, force: true }));
    this.note(dirname(name));
  }

  /** Removes a folder with its content, so that either all or nothing of it is left. Opening a store empties the trash. */
  discard(folder: string): void {
    if (this.stat(folder) === undefined) return;
    this.remove(trashFolder);
    this.rename(folder, trashFolder);
    this.remove(trashFolder);
  }

  /** Removes a folder if it is empty. Returns whether it did. */
  removeEmpty(folder: string): boolean {
    try {
      rmdirSync(this.#path(folder));
    } catch {
      return false;
    }
    this.note(dirname(folder));
    return true;
  }

  makeFolder(folder: string): void {
    this.#try(folder, () => {
      const path = join(this.root, folder);
      const first = mkdirSync(path, { recursive: true });
      if (first === undefined) return;
      // Each new folder is an entry of the one above it.
      for (let made = path; made.length >= first.length; made = dirname(made))
        this.note(relative(this.root, dirname(made)));
    });
  }

  /** Remembers that a file, or the names in a folder, must be synced. */
  note(name: string): void {
    if (this.#durable) this.#unsynced.add(name);
  }

  /** The writes since the last call, for {@link Disk.sync}; `undefined`: none. */
  takeUnsynced(): ReadonlySet<string> | undefined {
    const unsynced = this.#unsynced;
    if (unsynced.size === 0) return undefined;
    this.#unsynced = new Set();
    return unsynced;
  }

  /** Waits until files and folders are on the disk, in the order in which they were noted. */
  async sync(names: ReadonlySet<string>): Promise<void> {
    for (const name of names) await this.#sync(name);
  }

  async #sync(name: string): Promise<void> {
    let fd: number | undefined;
    try {
      fd = openSync(this.#path(name), 'r');
      await dataSync(fd);
    } catch (error) {
      // Deleted files need no sync.
      if (codeOf(error) !== 'ENOENT' && !isFolderOnWindows(error)) throw diskError(error, name);
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }

  /** Renames a file that was written under another name. */
  #replace(name: string, write: (temporary: string) => void): void {
    this.#try(name, (path) => {
      const temporary = `${path}.tmp`;
      try {
        write(temporary);
        renameSync(temporary, path);
      } catch (error) {
        tryTo(() => rmSync(temporary, { force: true }));
        throw error;
      }
    });
    this.note(dirname(name));
  }

  // Names are relative and always ours, so nothing has to be resolved.
  #path(name: string): string {
    return `${this.root}/${name}`;
  }

  #try<Result>(name: string, action: (path: string) => Result): Result {
    try {
      return action(this.#path(name));
    } catch (error) {
      throw diskError(error, name);
    }
  }
}

const dataSync = promisify(fdatasync);

function read(fd: number, from: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const count = readSync(fd, buffer, done, length - done, from + done);
    if (count === 0) break;
    done += count;
  }
  return buffer.subarray(0, done);
}

/** Opens a file that only the holder of the lock changes. */
function openUnderLock(path: string, name: string, flags: 'wx' | 'r+'): number {
  try {
    return openSync(path, flags);
  } catch (error) {
    const isOther = ['EEXIST', 'ENOENT'].includes(codeOf(error) ?? '');
    throw isOther ? changedUnderLock(name) : error;
  }
}

function writeAll(fd: number, data: Buffer, at: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, at + done);
  }
}

/** Does something that may fail after an error that is reported. */
function tryTo(action: () => void): void {
  try {
    action();
  } catch {
    // Report the earlier error.
  }
}

function ifThere<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Windows has no way to sync a folder, and needs none. */
function isFolderOnWindows(error: unknown): boolean {
  return process.platform === 'win32' && ['EPERM', 'EISDIR'].includes(codeOf(error) ?? '');
}

const meanings: Readonly<Record<string, readonly [Status, string]>> = {
  ENOSPC: ['RESOURCE_EXHAUSTED', 'the disk is full; make room and try again'],
  EDQUOT: ['RESOURCE_EXHAUSTED', 'the disk quota is used up; make room and try again'],
  EMFILE: ['RESOURCE_EXHAUSTED', 'too many files are open; raise the limit of the process'],
  EFBIG: ['RESOURCE_EXHAUSTED', 'the file would become too large; prune the session'],
  EROFS: ['PERMISSION_DENIED', 'the file system is read-only'],
  EACCES: ['PERMISSION_DENIED', 'access is denied; check the permissions of the directory'],
  EPERM: ['PERMISSION_DENIED', 'it is not permitted; check the permissions of the directory'],
  ENOTDIR: ['FAILED_PRECONDITION', 'a part of its path is no folder'],
  EISDIR: ['FAILED_PRECONDITION', 'there is a folder where a file should be'],
};

/** The error for a file, with its name relative to the store's directory. */
export function diskError(cause: unknown, name: string): unknown {
  if (isWaymarkError(cause)) return cause;
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const [status, reason] = meanings[code] ?? ['UNAVAILABLE', `the system says ${code}`];
  return storeFault(status, `The file store cannot use "${name}": ${reason}.`, { cause });
}

/** The error for stored data that cannot be right. */
export function dataLoss(name: string, problem: string, cause?: unknown): WaymarkError {
  return storeFault(
    'DATA_LOSS',
    `"${name}" of the file store is damaged: ${problem}. Restore it from a backup or from version control.`,
    { cause },
  );
}

/** The error for a file that was changed without the lock between our read and our write. */
function changedUnderLock(name: string): WaymarkError {
  return storeFault(
    'ABORTED',
    `"${name}" of the file store was changed by something that does not hold its lock. Try again.`,
  );
}

/** Skips what is damaged: a caller that reads it gets the error. */
export function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!isWaymarkError(error)) throw error;
  }
}
