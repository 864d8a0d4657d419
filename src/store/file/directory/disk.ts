import {
  closeSync,
  copyFileSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { changedUnderLock, diskError, isMissing, isThere } from './disk-error.ts';
import {
  dataSync,
  holdFile,
  ifThere,
  isFolderOnWindows,
  read,
  syncFolder,
  tryTo,
  writeAll,
} from './file-io.ts';
import { type FileStamp, toStamp } from './file-stamp.ts';
import { listInSteps } from './list-in-steps.ts';

/** An open file, for reading at any place. */
export interface FileReader {
  readonly stamp: FileStamp;
  read(from: number, length: number): Buffer;
}

/** Files and folders that are not on the disk yet; of some files, the descriptor that they were written through. */
export type Unsynced = Map<string, number | undefined>;

/**
 * The files below one directory, by names relative to it, which errors show. Writing is for the holder of the lock; what was
 * written is safe from the death of the process at once, and from a power cut after {@link Disk.sync}.
 */
export class Disk {
  readonly root: string;
  /** Changes whenever another process may have changed files. While it stays the same, only this process has, or a person. */
  era = 0;
  readonly #durable: boolean;
  #unsynced: Unsynced = new Map();

  constructor(root: string, { durable }: { readonly durable: boolean }) {
    this.root = root;
    this.#durable = durable;
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
    // An error for what is not there would cost more than the look.
    if (this.stamp(name) === undefined) return undefined;
    return this.#try(name, (path) => ifThere(() => readFileSync(path, 'utf8')));
  }

  /** The names in a folder, sorted; none when it is not there. */
  list(folder: string): readonly string[] {
    return this.#try(folder, (path) => ifThere(() => readdirSync(path).sort()) ?? []);
  }

  /** Like {@link Disk.list}, a few names at a time, so that others can use the thread meanwhile. */
  async listLater(folder: string): Promise<readonly string[]> {
    try {
      return await listInSteps(this.#path(folder));
    } catch (error) {
      if (isMissing(error)) return [];
      throw diskError(error, folder);
    }
  }

  /** Makes a new file, in a folder that is made as well when it is not there. */
  create(name: string, data: Buffer, { durable }: { readonly durable: boolean }): void {
    this.#try(name, () => {
      const fd = this.#openNew(name);
      try {
        writeAll(fd, data, 0);
      } catch (error) {
        ftruncateSync(fd, 0);
        throw error;
      } finally {
        this.#done(name, fd, durable);
      }
    });
  }

  /**
   * Makes a file be its first `at` bytes and then `data`, and returns its inode where that was looked at. It must have `size` bytes: more than `at`
   * when there is the beginning of a line, which a dead process left. When writing fails half way, as on a full disk, the file
   * ends at `at`, with `rest` behind it.
   */
  append(
    name: string,
    {
      at,
      size,
      durable,
      rest,
    }: {
      readonly at: number;
      readonly size: number;
      readonly durable: boolean;
      readonly rest: Buffer;
    },
    data: Buffer,
  ): bigint | undefined {
    return this.#try(name, (path) => {
      const fd = ifThere(() => openSync(path, 'r+'));
      if (fd === undefined) {
        // An empty one may be removed by any process.
        if (at > 0) throw changedUnderLock(name);
        this.create(name, data, { durable });
        return undefined;
      }
      try {
        const found = fstatSync(fd, { bigint: true });
        if (Number(found.size) !== size) throw changedUnderLock(name);
        try {
          writeAll(fd, data, at);
        } catch (error) {
          ftruncateSync(fd, at);
          tryTo(() => writeAll(fd, rest, at));
          throw error;
        }
        if (size > at + data.length) ftruncateSync(fd, at + data.length);
        return found.ino;
      } finally {
        this.#done(name, fd, durable);
      }
    });
  }

  /** Makes a few bytes all that a file holds. Returns whether there is one. */
  replaceAll(name: string, data: Buffer): boolean {
    return this.#try(name, (path) => {
      const fd = ifThere(() => openSync(path, 'r+'));
      if (fd === undefined) return false;
      try {
        ftruncateSync(fd, data.length);
        writeAll(fd, data, 0);
        return true;
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

  /** Puts a file or folder in another place, in one step, over a file that is there. */
  move(from: string, to: string): void {
    this.makeFolder(dirname(to));
    this.#try(from, (path) => renameSync(path, this.#path(to)));
    this.note(dirname(from));
    this.note(dirname(to));
  }

  /**
   * Puts a file in place of another, in one step. Freeing the space of a long file would take more time than all the rest, and
   * does not keep the thread.
   */
  moveOver(from: string, to: string): void {
    const free = holdFile(this.#path(to));
    try {
      this.move(from, to);
    } finally {
      free();
    }
  }

  /** Waits until a file is on the disk, without keeping the thread. One that is gone needs no waiting. */
  async flushLater(name: string): Promise<void> {
    const fd = this.#try(name, (path) => ifThere(() => openSync(path, 'r+')));
    if (fd !== undefined) await this.#sync(name, fd);
  }

  /** Removes a file or a folder with all that is in it, without keeping the thread. */
  async removeLater(name: string): Promise<void> {
    try {
      await rm(this.#path(name), { recursive: true, force: true });
    } catch (error) {
      throw diskError(error, name);
    }
  }

  /** Gives a file another name. */
  rename(from: string, to: string): void {
    this.#try(to, (path) => renameSync(this.#path(from), path));
    this.note(dirname(to));
  }

  /** Gives a file a second name, or makes a copy where the file system has one name for each; durable when it returns. */
  link(from: string, to: string): void {
    const folder = dirname(to);
    this.makeFolder(folder);
    this.#try(to, (path) => {
      try {
        linkSync(this.#path(from), path);
      } catch (error) {
        if (isThere(error)) return;
        this.#copy(from, path);
      }
      syncFolder(join(this.root, folder));
    });
  }

  #copy(from: string, path: string): void {
    const temporary = `${path}.tmp`;
    copyFileSync(this.#path(from), temporary);
    const fd = openSync(temporary, 'r+');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  }

  /** Waits until a file is on the disk, for what is written next to rely on it. */
  flush(name: string): void {
    if (this.#durable) this.flushNow(name);
  }

  /** Waits until a file is on the disk, also where changes need not be durable: it is about to replace one that is. */
  flushNow(name: string): void {
    this.#try(name, (path) => {
      const fd = openSync(path, 'r+');
      try {
        fdatasyncSync(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Removes a file that is of no use any more; after a power cut it may be back. */
  unlink(name: string): void {
    this.#try(name, (path) => ifThere(() => unlinkSync(path)));
  }

  /** Removes a file or a folder with all that is in it. */
  remove(name: string): void {
    this.#try(name, (path) => rmSync(path, { recursive: true, force: true }));
    this.note(dirname(name));
  }

  /** Removes a folder, and those above it up to `top`, as long as they are empty. */
  removeEmpty(folder: string, top: string): void {
    for (let at = folder; at.startsWith(`${top}/`); at = dirname(at)) {
      if (!this.removeIfEmpty(at)) return;
    }
  }

  /** Removes a folder that is empty. Returns whether it did. */
  removeIfEmpty(folder: string): boolean {
    try {
      rmdirSync(join(this.root, folder));
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

  /** Remembers that the names in a folder have changed, and are to be synced. */
  note(folder: string): void {
    if (this.#durable && !this.#unsynced.has(folder)) this.#unsynced.set(folder, undefined);
  }

  /** What was written since the last call, to be given to {@link Disk.sync}; `undefined`: nothing. */
  takeUnsynced(): Unsynced | undefined {
    const unsynced = this.#unsynced;
    if (unsynced.size === 0) return undefined;
    this.#unsynced = new Map();
    return unsynced;
  }

  /** Waits until files and folders are on the disk. One that is gone again needs no waiting. */
  async sync(unsynced: Unsynced): Promise<void> {
    await Promise.all(Array.from(unsynced, ([name, fd]) => this.#sync(name, fd)));
  }

  async #sync(name: string, written: number | undefined): Promise<void> {
    let fd = written;
    try {
      fd ??= openSync(this.#path(name), 'r');
      await dataSync(fd);
    } catch (error) {
      if (!isMissing(error) && !isFolderOnWindows(error)) throw diskError(error, name);
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }

  #openNew(name: string): number {
    const path = this.#path(name);
    try {
      return openSync(path, 'wx');
    } catch (error) {
      if (isThere(error)) return this.#openUnfinished(name);
      if (!isMissing(error)) throw error;
      this.makeFolder(dirname(name));
      return openSync(path, 'wx');
    }
  }

  /** Opens, emptied, a file without a whole line: a process died after it had made the file and before it had written it. */
  #openUnfinished(name: string): number {
    const fd = openSync(this.#path(name), 'r+');
    try {
      const { size } = fstatSync(fd);
      if (read(fd, 0, size).includes('\n')) throw changedUnderLock(name);
      ftruncateSync(fd, 0);
      return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Closes a file that was written, after it is synced where it has to be: opening it again for that would cost more. */
  #done(name: string, fd: number, durable: boolean): void {
    if (!durable || !this.#durable || this.#unsynced.get(name) !== undefined) closeSync(fd);
    else this.#unsynced.set(name, fd);
  }

  // Names are relative, and all of them ours: nothing has to be resolved.
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
