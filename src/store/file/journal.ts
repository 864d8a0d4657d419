import { dirname } from 'node:path';
import { isWaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { checkFormat, checkLine, parseLine, tailLength } from './checked-line.ts';
import type { Disk, FileReader } from './disk.ts';
import { dataLoss } from './disk.ts';

/** The bytes of a line in its file, line feed included. */
export interface Place {
  readonly at: number;
  readonly length: number;
}

/** Receives the lines of a journal: the head line first, then every other, once and in order. */
export interface JournalReader {
  /** Forgets everything: the file is gone or was replaced. */
  reset(): void;
  head?(line: JsonObject): void;
  line(line: JsonObject, place: Place): void;
  /** Accepts the error of a damaged line. Without this, it is thrown. */
  damaged?(error: unknown): void;
}

const newline = 0x0a;

/** How much of a file is read at a time, at least. */
const portion = 4 * 1024 * 1024;

// An empty line follows the last one, and the next line overwrites it. A file without it was cut, or its writer died.
const end = Buffer.from('\n');

/**
 * A file of JSON lines that is appended to or replaced as a whole. A line counts once its line feed is written. The end of the last
 * line that was read, which has its checksum, tells whether the file still begins as it did.
 */
export class Journal {
  readonly name: string;
  readonly #disk: Disk;
  readonly #reader: JournalReader;
  /** The hold of the lock in which the file was last read or written. */
  #hold: number | undefined;
  /** The size of the file; `undefined`: there is none. */
  #size: number | undefined;
  /** Where the last whole line ends. */
  #end = 0;
  #lines = 0;
  /** The end of the last whole line. */
  #tail = '';
  #hasEmptyLine = false;
  /** Whether the file's name is on the disk. */
  #isPlaced = false;

  constructor(disk: Disk, name: string, reader: JournalReader) {
    this.#disk = disk;
    this.name = name;
    this.#reader = reader;
  }

  /** Whether the file has a head line. */
  get exists(): boolean {
    return this.#lines > 0;
  }

  /** Whether the file ends as this class writes it: not with half a line, and with nothing missing. */
  get isWhole(): boolean {
    if (this.#size === undefined) return true;
    return this.#hasEmptyLine && this.#size === this.#end + end.length;
  }

  /** Number of bytes of whole lines. */
  get size(): number {
    return this.#end;
  }

  /** Reads new lines, at most once per hold of the lock. Returns whether there were any changes. */
  refresh(): boolean {
    if (this.#hold === this.#disk.hold) return false;
    const wasThere = this.#size !== undefined;
    try {
      // An error for a missing file costs more than a check for a file that was not there before.
      const mayBeThere = wasThere || this.#disk.stat(this.name) !== undefined;
      const isNew = mayBeThere ? this.#disk.open(this.name, (file) => this.#read(file)) : undefined;
      this.#hold = this.#disk.hold;
      if (isNew !== undefined) return isNew;
      if (wasThere) this.#reset();
      return wasThere;
    } catch (error) {
      // Discard a partial read: the next refresh starts from the beginning.
      this.forget();
      throw error;
    }
  }

  /**
   * Appends a line, first the head line. Call it under the lock, after a refresh. A line that is not durable survives the death of the
   * process, but may not survive a power cut.
   */
  append(line: string, { durable = true }: { readonly durable?: boolean } = {}): Place {
    const data = Buffer.from(`${line}\n\n`);
    const place = { at: this.#end, length: data.length - end.length };
    const rest = this.#hasEmptyLine ? end : Buffer.alloc(0);
    this.#disk.append(this.name, data, { at: this.#end, size: this.#size, durable, rest });
    if (durable && !this.#isPlaced) {
      this.#disk.note(dirname(this.name));
      this.#isPlaced = true;
    }
    this.#end += place.length;
    this.#size = this.#end + end.length;
    this.#lines++;
    this.#tail = tailOf(data.subarray(0, -end.length));
    this.#hasEmptyLine = true;
    this.#hold = this.#disk.hold;
    return place;
  }

  /** Replaces the file by some lines, in one step. The next refresh reads them. */
  rewrite(lines: Iterable<Buffer | string>): void {
    const pieces = function* (): Generator<Buffer | string, void> {
      for (const line of lines) {
        yield line;
        yield end;
      }
      yield end;
    };
    this.#disk.replace(this.name, pieces());
    this.forget();
  }

  /** Forgets what was read, so that the next refresh reads everything. */
  forget(): void {
    this.#reset();
    this.#hold = undefined;
  }

  /** Returns whether anything has changed. */
  #read(file: FileReader): boolean {
    const known = this.#end === 0 ? 0 : tailLength + end.length;
    // The end of the last line, the empty line, and a byte more if there is one.
    const tail = file.read(this.#end - known, known + end.length + 1);
    const isContinued =
      known === 0 || (tail.length >= known && tailOf(tail.subarray(0, known)) === this.#tail);
    const isSame = this.isWhole && tail.length === known + end.length;
    if (isContinued && isSame && this.#size !== undefined) return false;
    if (!isContinued) this.#reset();
    this.#hasEmptyLine = false;
    const size = file.size();
    let at = this.#end;
    let rest: Buffer = Buffer.alloc(0);
    for (let length = portion; at < size; ) {
      const bytes = file.read(at, Math.min(length, size - at));
      if (bytes.length === 0) break;
      at += bytes.length;
      rest = this.#take(rest.length === 0 ? bytes : Buffer.concat([rest, bytes]));
      // A line that is longer than a portion is not put together from many of them.
      if (rest.length >= length) length *= 2;
    }
    this.#size = size;
    return true;
  }

  /** Hands over the whole lines in some bytes, and returns the rest. */
  #take(bytes: Buffer): Buffer {
    let start = 0;
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, start)) {
      this.#hand(bytes.subarray(start, at + 1));
      start = at + 1;
    }
    return bytes.subarray(start);
  }

  #hand(bytes: Buffer): void {
    const place = `line ${this.#lines + 1}`;
    if (this.#hasEmptyLine) throw dataLoss(this.name, 'there are lines after its last line');
    if (bytes.length === end.length) {
      this.#hasEmptyLine = true;
      return;
    }
    try {
      this.#pass(bytes.subarray(0, -end.length), place);
    } catch (cause) {
      // Other statuses are about the arguments of a caller, and this is stored data.
      const isKnown = isWaymarkError(cause) && cause.status !== 'INVALID_ARGUMENT';
      const error = isKnown ? cause : dataLoss(this.name, `${place} makes no sense`, cause);
      if (this.#reader.damaged === undefined) throw error;
      this.#reader.damaged(error);
    }
    this.#tail = tailOf(bytes);
    this.#end += bytes.length;
    this.#lines++;
  }

  #pass(text: Buffer, place: string): void {
    const isHead = this.#lines === 0;
    // A file of another format may have no checksums.
    if (isHead) checkFormat(parseLine(text, this.name, place), this.name);
    checkLine(text, this.name, place);
    const content = parseLine(text, this.name, place);
    if (isHead) this.#reader.head?.(content);
    else this.#reader.line(content, { at: this.#end, length: text.length + end.length });
  }

  #reset(): void {
    this.#size = undefined;
    this.#end = 0;
    this.#lines = 0;
    this.#tail = '';
    this.#hasEmptyLine = false;
    this.#isPlaced = false;
    this.#reader.reset();
  }
}

/** The end of the last line in some bytes that end with its line feed. */
function tailOf(bytes: Buffer): string {
  return bytes.toString('latin1', bytes.length - tailLength - end.length);
}
