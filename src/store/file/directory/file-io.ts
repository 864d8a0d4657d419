import { close, closeSync, fdatasync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { isMissing } from './disk-error.ts';

/** Waits until a file is on the disk. */
export function dataSync(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** Reads bytes from a place on; fewer where the file ends. */
export function read(fd: number, from: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const count = readSync(fd, buffer, done, length - done, from + done);
    if (count === 0) break;
    done += count;
  }
  return buffer.subarray(0, done);
}

/** Does what may fail after an error that is reported. */
export function tryTo(action: () => void): void {
  try {
    action();
  } catch {
    // Report the earlier error.
  }
}

/** Writes all bytes at a place. */
export function writeAll(fd: number, data: Buffer, at: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, at + done);
  }
}

/** Waits until the names in a folder are on the disk. */
export function syncFolder(path: string): void {
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

/**
 * Keeps a file open, so that its space stays when another takes its name. Returns a function that closes it in another thread,
 * where that space is freed.
 */
export function holdFile(path: string): () => void {
  // A file that is open cannot be replaced there.
  if (process.platform === 'win32') return () => {};
  try {
    const fd = openSync(path, 'r');
    return () => close(fd, () => {});
  } catch {
    // It only takes longer without, and there may be no such file.
    return () => {};
  }
}

/** What an action gives; `undefined` when its file is missing. */
export function ifThere<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Windows has no way to sync a folder, and needs none. */
export function isFolderOnWindows(error: unknown): boolean {
  return (
    process.platform === 'win32' &&
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EPERM' || error.code === 'EISDIR')
  );
}
