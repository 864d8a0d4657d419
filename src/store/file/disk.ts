import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { systemClock } from '../../core/clock.ts';
import { changedUnderLock, diskError, isMissing } from './disk-error.ts';

/** Tells one version of a file from another without reading it. */
export interface FileStamp {
  readonly inode: bigint;
  readonly size: number;
  readonly changed: bigint;
  /**
   * Whether a later change would show. Two changes within a tick of the file system's clock have the same time, and a file
   * that takes another's place may have its inode and its size.
   */
  readonly isSettled: boolean;
}

/** An open file, for reading at any place. */
export interface FileReader {
  readonly stamp: FileStamp;
  read(from: number, length: number): Buffer;
}

/**
 * The files below one directory, by names relative to it, which errors show. Writing is for the holder of the lock; what was
 * written is safe from the death of the process at once, and from a power cut after {@link Disk.sync}.
 */
export class Disk {
  readonly root: string;
  #unsynced = new Set<string>();

  constructor(root: string) {
    this.root = root;
  }

  stamp(name: string): FileStamp | undefined {
    return this.#try(name, (path) => {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stat && toStamp(stat);
    });
  }

  /** Reads an existing file; `undefined` when there is none. */
  open<Result>(name: string, use: (file: FileReader) => Result): Result | undefined {
    const fd = this.#try(name, (path) => ifThere(() => openSync(path, 'r')));
    if (fd === undefined) return undefined;
    try {
      const stamp = this.#try(name, () => toStamp(fstatSync(fd, { bigint: true })));
      return use({ stamp, read: (from, length) => this.#try(name, () => read(fd, from, length)) });
    } finally {
      closeSync(fd);
    }
  }

  readText(name: string): string | undefined {
    return this.#try(name, (path) => ifThere(() => readFileSync(path, 'utf8')));
  }

  /** The names in a folder, sorted; none when it is not there. */
  list(folder: string): readonly string[] {
    return this.#try(folder, (path) => ifThere(() => readdirSync(path).sort()) ?? []);
  }

  /**
   * Makes a file be its first `at` bytes and then `data`. It must have `size` bytes: more than `at` when a dead process left
   * the beginning of a line. When writing fails half way, as on a full disk, the file ends at `at`.
   */
  append(
    name: string,
    {
      at,
      size,
      durable,
    }: { readonly at: number; readonly size: number; readonly durable: boolean },
    data: Buffer,
  ): FileStamp {
    if (size === 0) this.makeFolder(dirname(name));
    return this.#try(name, (path) => {
      const fd = openSync(path, size === 0 ? 'a+' : 'r+');
      try {
        if (fstatSync(fd).size !== size) throw changedUnderLock(name);
        if (size > at) ftruncateSync(fd, at);
        try {
          writeAll(fd, data, at);
        } catch (error) {
          ftruncateSync(fd, at);
          throw error;
        }
        if (durable) this.#unsynced.add(name);
        if (durable && size === 0) this.#unsynced.add(dirname(name));
        return toStamp(fstatSync(fd, { bigint: true }));
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Puts a whole file in place of another, or of none, in one step that is durable when it returns. */
  replace(name: string, data: Buffer | string): void {
    const folder = dirname(name);
    this.makeFolder(folder);
    this.#try(name, (path) => {
      const temporary = `${path}.tmp`;
      const fd = openSync(temporary, 'w');
      try {
        writeAll(fd, Buffer.from(data), 0);
        fsyncSync(fd);
      } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, path);
      syncFolder(join(this.root, folder));
    });
  }

  /** Removes a file that is of no use any more; after a power cut it may be back. */
  unlink(name: string): void {
    this.#try(name, (path) => ifThere(() => unlinkSync(path)));
    this.#unsynced.delete(name);
  }

  /** Removes a file or a folder with all that is in it. */
  remove(name: string): void {
    this.#try(name, (path) => rmSync(path, { recursive: true, force: true }));
    this.#unsynced.add(dirname(name));
  }

  /** Removes a folder, and those above it up to `top`, as long as they are empty. */
  removeEmpty(folder: string, top: string): void {
    for (let at = folder; at.startsWith(`${top}/`); at = dirname(at)) {
      try {
        rmdirSync(join(this.root, at));
      } catch {
        return;
      }
      this.#unsynced.add(dirname(at));
    }
  }

  makeFolder(folder: string): void {
    this.#try(folder, (path) => {
      const first = mkdirSync(path, { recursive: true });
      if (first === undefined) return;
      // Each new folder is an entry of the one above it.
      for (let made = path; made.length >= first.length; made = dirname(made))
        this.#unsynced.add(relative(this.root, dirname(made)));
    });
  }

  /** What was written since the last call, to be given to {@link Disk.sync}. */
  takeUnsynced(): ReadonlySet<string> {
    const names = this.#unsynced;
    this.#unsynced = new Set();
    return names;
  }

  /** Waits until files and folders are on the disk. One that is gone again needs no waiting. */
  async sync(names: ReadonlySet<string>): Promise<void> {
    await Promise.all([...names].map((name) => this.#sync(name)));
  }

  async #sync(name: string): Promise<void> {
    try {
      const file = await open(join(this.root, name), 'r');
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!isMissing(error) && !isFolderOnWindows(error)) throw diskError(error, name);
    }
  }

  #try<Result>(name: string, action: (path: string) => Result): Result {
    try {
      return action(join(this.root, name));
    } catch (error) {
      throw diskError(error, name);
    }
  }
}

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

function writeAll(fd: number, data: Buffer, at: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, at + done);
  }
}

// Longer than a tick of any file system's clock that is worth having.
const settlingTime = 20;

function toStamp(stat: { ino: bigint; size: bigint; mtimeMs: bigint; mtimeNs: bigint }): FileStamp {
  const isSettled = systemClock.now() - Number(stat.mtimeMs) > settlingTime;
  return { inode: stat.ino, size: Number(stat.size), changed: stat.mtimeNs, isSettled };
}

function syncFolder(path: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    fsyncSync(fd);
  } catch (error) {
    if (!isFolderOnWindows(error)) throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function ifThere<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

// Windows has no way to sync a folder, and needs none.
function isFolderOnWindows(error: unknown): boolean {
  return (
    process.platform === 'win32' &&
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EPERM' || error.code === 'EISDIR')
  );
}
