import { closeSync, openSync, statSync, writeSync } from 'node:fs';

interface Mark {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

// So many others cannot have come and gone within a tick of the file system's clock.
const longest = 4096;

/**
 * A file that shows who held the lock last: each new holder appends a byte. If it is as we
 * left it, no other process has held the lock since.
 */
export class LockGeneration {
  readonly path: string;
  #left: Mark | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Leaves our mark, under the lock. Returns whether it was still there. */
  renew(): boolean {
    const found = markAt(this.path);
    if (isSame(found, this.#left)) return true;
    this.#left = undefined;
    const file = openSync(this.path, found !== undefined && found.size < longest ? 'a' : 'w');
    try {
      writeSync(file, '.');
    } finally {
      closeSync(file);
    }
    this.#left = markAt(this.path);
    return false;
  }

  /** Takes nothing for known any more. */
  forget(): void {
    this.#left = undefined;
  }
}

function markAt(path: string): Mark | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSame(found: Mark | undefined, left: Mark | undefined): boolean {
  if (found === undefined || left === undefined) return false;
  return found.size === left.size && found.mtimeMs === left.mtimeMs && found.ino === left.ino;
}
