import { toLine } from '../directory/checked-line.ts';
import type { Disk } from '../directory/disk.ts';
import type { NewFile } from '../sessions/journal.ts';
import type { JournalHead } from '../sessions/journal-line.ts';

// The empty line at the end, which the next line is written over.
const end = Buffer.from('\n');

/**
 * A journal that is written a portion at a time, and then replaces another in one step. Its name is fixed, so that
 * what a dead process leaves of it is found: each portion is written only if the file is as this process left it.
 */
export class NextJournal {
  readonly #disk: Disk;
  readonly #target: string;
  readonly #name: string;
  readonly #head: Buffer;
  #size = 0;
  #lines = 0;

  constructor(disk: Disk, target: string, head: JournalHead) {
    this.#disk = disk;
    this.#target = target;
    this.#name = `${target}.tmp`;
    this.#head = Buffer.from(`${toLine(head)}\n`);
  }

  /** Appends whole lines, under the lock. Returns `false` when another process has taken the file. */
  write(data: Buffer): boolean {
    if (this.#size === 0) this.#begin();
    else if (!this.isOurs) return false;
    const place = { at: this.#size, size: this.#size + end.length, durable: false, rest: end };
    this.#disk.append(this.#name, place, Buffer.concat([data, end]));
    this.#size += data.length;
    for (let at = data.indexOf(end); at >= 0; at = data.indexOf(end, at + 1)) this.#lines++;
    return true;
  }

  /** Whether it is as this process left it. */
  get isOurs(): boolean {
    const isSame = this.#disk.open(
      this.#name,
      ({ stamp, read }) =>
        stamp.size === this.#size + end.length && read(0, this.#head.length).equals(this.#head),
    );
    return isSame ?? false;
  }

  /** Waits until it is on the disk, without the lock. */
  sync(): Promise<void> {
    return this.#disk.flushLater(this.#name);
  }

  /** Waits until it is on the disk, under the lock. */
  syncNow(): void {
    this.#disk.flushNow(this.#name);
  }

  /** Replaces the journal, under the lock. */
  replace(): NewFile {
    this.#disk.moveOver(this.#name, this.#target);
    return { head: this.#head, size: this.#size, lines: this.#lines };
  }

  /** Removes it, when it is still there and ours, under the lock. */
  discard(): void {
    if (this.#size > 0 && this.isOurs) this.#disk.unlink(this.#name);
  }

  #begin(): void {
    // One that a process left that died.
    this.#disk.unlink(this.#name);
    this.#disk.create(this.#name, Buffer.concat([this.#head, end]), { durable: false });
    this.#size = this.#head.length;
    this.#lines = 1;
  }
}
