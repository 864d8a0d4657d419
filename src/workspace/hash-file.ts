import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { codeOf } from '../core/error.ts';
import type { SkippedPath } from './contract/contract.ts';
import { isDue, type Steps } from './slices.ts';

/** The facts that tell whether a file was changed, as git's index has them. */
export interface FileStat {
  readonly size: number;
  readonly modifiedAt: number;
  /** When the inode was changed, which programs cannot set. */
  readonly changedAt: number;
  readonly inode: number;
}

export function statOf({ size, mtimeMs, ctimeMs, ino }: Stats): FileStat {
  return { size, modifiedAt: mtimeMs, changedAt: ctimeMs, inode: ino };
}

export function isSameStat(one: FileStat, other: FileStat): boolean {
  return (
    one.size === other.size &&
    one.modifiedAt === other.modifiedAt &&
    one.changedAt === other.changedAt &&
    one.inode === other.inode
  );
}

/** Opens a regular file for reading and nothing else: no link, and no pipe that would wait for a writer. */
export const readFlags =
  constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

const maxTries = 3;
// The steps of a scan run one at a time, and none yields between filling and hashing it.
const buffer = Buffer.allocUnsafe(256 * 1024);

/** A file's hash and its facts when it was read. A reason if it cannot be read, `undefined` if it is gone. */
export function* hashFile(
  path: string,
  maxBytes: number,
): Steps<{ readonly hash: string; readonly stat: FileStat } | SkippedPath['reason'] | undefined> {
  let fd: number;
  try {
    fd = openSync(path, readFlags);
  } catch (error) {
    return whyNot(error);
  }
  try {
    for (let tries = 0; tries < maxTries; tries++) {
      const before = fstatSync(fd);
      if (!before.isFile()) return 'changing';
      if (before.size > maxBytes) return 'too-large';
      const hash = createHash('sha256');
      let at = 0;
      for (;;) {
        const length = readSync(fd, buffer, 0, buffer.length, at);
        if (length === 0) break;
        hash.update(buffer.subarray(0, length));
        at += length;
        // A file may grow as fast as it is read.
        if (at > before.size) break;
        if (isDue()) yield;
      }
      const stat = statOf(before);
      if (at === before.size && isSameStat(stat, statOf(fstatSync(fd)))) {
        return { hash: hash.digest('hex'), stat };
      }
    }
    return 'changing';
  } catch (error) {
    return whyNot(error);
  } finally {
    closeSync(fd);
  }
}

function whyNot(error: unknown): SkippedPath['reason'] | undefined {
  const code = codeOf(error) ?? '';
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
  // It was replaced by a link or a folder between its listing and its opening.
  if (code === 'ELOOP' || code === 'EISDIR') return 'changing';
  if (['EACCES', 'EPERM', 'EIO', 'EBUSY', 'ENXIO'].includes(code)) return 'unreadable';
  throw error;
}
