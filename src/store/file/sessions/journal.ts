import { dirname } from 'node:path';
import { isWaymarkError } from '../../../core/error.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../../core/json/json.ts';
import { checkLine, toLine, withSum } from '../directory/checked-line.ts';
import type { Disk, FileReader } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import type { FileStamp } from '../directory/file-stamp.ts';
import { checkFormat, format, formatOf } from '../directory/format.ts';

/** Receives a journal's lines: the head line first, then every other, once and in order. */
export interface JournalReader {
  /** Forget everything: the file is gone, or is another one now. */
  reset(): void;
  head(line: JsonObject): void;
  line(line: JsonObject, place: { readonly at: number; readonly length: number }): void;
}

const newline = 0x0a;

/** How much of a journal is read at most before something else may run. One line is always read. */
export interface Portion {
  readonly lines: number;
  readonly bytes: number;
}

/** A file that took the place of a journal. */
export interface NewFile {
  /** Its first line. */
  readonly head: Buffer;
  /** The bytes of its lines, without the empty one at the end. */
  readonly size: number;
  readonly lines: number;
}

const everything: Portion = { lines: Number.POSITIVE_INFINITY, bytes: 4 * 1024 * 1024 };

/** What maintenance reads or writes of a journal at a time. */
export const portion: Portion = { lines: 64, bytes: 128 * 1024 };

/** How long a file is that says nothing. Not empty: ext4 hurries to write out what is put into a file that was emptied. */
export const clearedSize = 1;

// Stands behind the last line. The next one is written over it, so a file that does not end with it was cut, or a process
// died while it wrote a line.
const end = Buffer.from('\n');

/**
 * A file of JSON lines that is only ever appended to, or replaced as a whole. A line is a change: it is there when its line
 * feed is. The head line carries the format and an id that is new whenever the file is rewritten, so that a reader knows
 * whether it can continue where it stopped.
 */
export class Journal {
  readonly name: string;
  readonly #disk: Disk;
  readonly #reader: JournalReader;
  readonly #isPrivate: boolean;
  /** When the file was last looked at, by the era of the disk. */
  #era: number | undefined;
  #stamp: FileStamp | undefined;
  /** The head line that was read, a character for each byte: a buffer would hold on to what was read or written with it. */
  #head: string | undefined;
  /** Where the last whole line ends. */
  #end = 0;
  #lines = 0;
  /** Of its head line. */
  #format: number = format;
  /** Whether the empty line stands behind the last one. */
  #isWhole = false;
  /** Whether its name is on the disk as far as we know. */
  #isPlaced = false;

  /** A private one is never changed by hand: while no other process can have changed it, it is not even checked. */
  constructor(
    disk: Disk,
    name: string,
    reader: JournalReader,
    { isPrivate = false }: { readonly isPrivate?: boolean } = {},
  ) {
    this.#disk = disk;
    this.name = name;
    this.#reader = reader;
    this.#isPrivate = isPrivate;
  }

  /** Whether the file had a head line when it was last looked at. */
  get exists(): boolean {
    return this.#head !== undefined;
  }

  /** Whether it ends as it was left: not with the beginning of a line, nor with anything missing. */
  get isWhole(): boolean {
    if (this.#stamp === undefined || this.#format < summed) return true;
    return this.#isWhole && this.#stamp.size === this.#end + end.length;
  }

  /** How many bytes of whole lines there are. */
  get size(): number {
    return this.#end;
  }

  /** Reads what is new; costs at most one look at the file when nothing is. Returns whether anything was. */
  refresh(): boolean {
    if (this.#era === this.#disk.era && this.#isPrivate) return false;
    const [head, end] = [this.#head, this.#end];
    this.#refresh(everything);
    return this.#head !== head || this.#end !== end;
  }

  /** Reads a portion of what is new; returns whether that was all of it. {@link Journal.refresh} reads the rest. */
  refreshSome(some: Portion): boolean {
    return this.#refresh(some);
  }

  #refresh(some: Portion): boolean {
    const stamp = this.#disk.stamp(this.name);
    const isSame = isSameFile(stamp, this.#stamp, this.#era === this.#disk.era);
    this.#era = this.#disk.era;
    if (isSame) {
      this.#stamp = stamp;
      return true;
    }
    try {
      const isAll = this.#disk.open(this.name, (file) => this.#read(file, some));
      if (isAll === undefined) this.#reset();
      return isAll ?? true;
    } catch (error) {
      // Discard a partial read: the next refresh starts from the beginning.
      this.forget();
      throw error;
    }
  }

  /** Whether the file looks as it did last, which a look without the lock does not prove. */
  isAsLeft(): boolean {
    return isSameFile(this.#disk.stamp(this.name), this.#stamp, true);
  }

  /**
   * Appends lines, the head line first when the file is new. Only under the lock and after a refresh. Lines that are not
   * durable survive the death of the process, but perhaps not a power cut.
   */
  append(lines: readonly object[], { durable = true }: { readonly durable?: boolean } = {}): void {
    if (!this.#isPrivate && this.exists && this.#format < summed) this.#upgrade();
    const texts = lines.map((line) => `${toLine(line)}\n`);
    const text = texts.length === 1 ? (texts[0] ?? '') : texts.join('');
    const isEnded = !this.exists || this.#format >= summed;
    const data = Buffer.from(isEnded ? `${text}\n` : text);
    if (!this.exists) this.#format = format;
    const inode = this.#write(data, durable);
    if (durable && !this.#isPlaced) {
      this.#disk.note(dirname(this.name));
      this.#isPlaced = true;
    }
    this.#head ??= data.toString('latin1', 0, data.indexOf(newline) + 1);
    this.#end += data.length - (isEnded ? end.length : 0);
    this.#isWhole = isEnded;
    this.#lines += lines.length;
    this.#stamp = writtenStamp(this.#end + (isEnded ? end.length : 0), inode);
  }

  /** Removes the file. */
  remove(): void {
    if (this.#era !== this.#disk.era || this.#stamp !== undefined) this.#disk.unlink(this.name);
    this.#reset();
    this.#era = this.#disk.era;
  }

  /**
   * Makes the file say nothing and leaves it where it is, for whatever is appended next: making and removing files costs a
   * file system more than writing to them. What stays is the empty line at its end.
   */
  clear(): void {
    const isKnown = this.#era === this.#disk.era;
    const size = isKnown ? this.#stamp?.size : this.#disk.stamp(this.name)?.size;
    const isLong = size !== undefined && size > clearedSize;
    const isThere = isLong ? this.#disk.replaceAll(this.name, end) : size !== undefined;
    this.#reset();
    this.#era = this.#disk.era;
    if (!isThere) return;
    this.#isWhole = true;
    this.#stamp = writtenStamp(isLong ? clearedSize : size);
  }

  /** Takes note that another file was put in its place, from which its reader would learn what it knows already. */
  replaced({ head, size, lines }: NewFile): void {
    this.#head = head.toString('latin1');
    this.#format = format;
    this.#end = size;
    this.#lines = lines;
    this.#isWhole = true;
    this.#stamp = writtenStamp(size + end.length);
    this.#era = this.#disk.era;
  }

  /** Forgets what was read, so that the next refresh reads everything. */
  forget(): void {
    this.#reset();
    this.#era = undefined;
  }

  /** Rewrites a file of an older format with checksums. Readers load it again, because its head line is new. */
  #upgrade(): void {
    const bytes = this.#disk.open(this.name, (file) => file.read(0, this.#end));
    if (bytes === undefined) return;
    const lines: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const next = bytes.indexOf(newline, at);
      const line = bytes.subarray(at, next);
      const isHead = lines.length === 0;
      lines.push(isHead ? Buffer.from(newHead(line, this.name)) : withSum(line), end);
      at = next + 1;
    }
    const data = Buffer.concat([...lines, end]);
    this.#disk.replace(this.name, data);
    const head = data.subarray(0, data.indexOf(newline) + 1);
    this.replaced({ head, size: data.length - end.length, lines: this.#lines });
  }

  #write(data: Buffer, durable: boolean): bigint | undefined {
    const size = this.#stamp?.size;
    if (size !== undefined) {
      const rest = this.#isWhole ? end : Buffer.alloc(0);
      return this.#disk.append(this.name, { at: this.#end, size, durable, rest }, data);
    }
    this.#disk.create(this.name, data, { durable });
    return undefined;
  }

  /** Returns whether it has come to the end of the file. */
  #read(file: FileReader, some: Portion): boolean {
    if (this.#head !== undefined && !isContinued(file, this.#head, this.#end)) this.#reset();
    this.#isWhole = false;
    // Until it is read to its end it is not known.
    this.#stamp = undefined;
    const before = this.#lines;
    let at = this.#end;
    let rest: Buffer = Buffer.alloc(0);
    for (let length = some.bytes; at < file.stamp.size; ) {
      const bytes = file.read(at, Math.min(length, file.stamp.size - at));
      if (bytes.length === 0) break;
      at += bytes.length;
      rest = this.#take(
        rest.length === 0 ? bytes : Buffer.concat([rest, bytes]),
        before + some.lines - this.#lines,
      );
      const isLeft = rest.length > 0 || at < file.stamp.size;
      if (some !== everything && this.#lines > before && isLeft) return false;
      // A line that is longer than what is read at a time is not put together from many pieces.
      if (rest.length >= length) length *= 2;
    }
    this.#stamp = file.stamp;
    return true;
  }

  // Hands over the whole lines in some bytes, so many at most, and returns what is left.
  #take(bytes: Buffer, most: number): Buffer {
    let start = 0;
    let left = most;
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      if (left-- <= 0) break;
      this.#hand(bytes.subarray(start, end + 1));
      start = end + 1;
    }
    return bytes.subarray(start);
  }

  #hand(bytes: Buffer): void {
    const place = `line ${this.#lines + 1}`;
    if (this.#isWhole) throw dataLoss(this.name, 'something stands behind its last line');
    if (bytes.length === end.length) {
      this.#isWhole = true;
      return;
    }
    const isHead = this.#head === undefined;
    const line = parseLine(bytes, this.name, place);
    if (isHead) {
      checkFormat(line, this.name);
      this.#format = formatOf(line);
    }
    const text = bytes.subarray(0, -end.length);
    checkLine(text, this.name, place, this.#format >= summed);
    try {
      if (isHead) this.#reader.head(line);
      else this.#reader.line(line, { at: this.#end, length: bytes.length });
    } catch (error) {
      // Other statuses are about a caller's arguments, and this is stored data.
      if (isWaymarkError(error) && error.status !== 'INVALID_ARGUMENT') throw error;
      throw dataLoss(this.name, `${place} makes no sense`, error);
    }
    this.#head ??= bytes.toString('latin1');
    this.#end += bytes.length;
    this.#lines++;
  }

  #reset(): void {
    this.#stamp = undefined;
    this.#head = undefined;
    this.#end = 0;
    this.#lines = 0;
    this.#format = format;
    this.#isWhole = false;
    this.#isPlaced = false;
    this.#reader.reset();
  }
}

/** The format since which lines have checksums. */
const summed = 2;

function newHead(line: Buffer, name: string): string {
  const head = parseLine(line, name, 'line 1');
  return toLine({ ...head, waymark: format });
}

function parseLine(bytes: Buffer, name: string, place: string): JsonObject {
  let value: Json;
  try {
    value = parseJson(bytes.toString('utf8'), place);
  } catch (cause) {
    throw dataLoss(name, `${place} is not JSON`, cause);
  }
  if (!isJsonObject(value)) throw dataLoss(name, `${place} is no object`);
  return value;
}

function isContinued(file: FileReader, head: string, end: number): boolean {
  return file.stamp.size >= end && file.read(0, head.length).toString('latin1') === head;
}

/** What is known of a file that we have written: not when it was changed, which need not be known as long as it was us. */
function writtenStamp(size = 0, inode?: bigint): FileStamp {
  return { inode, size, changed: 0n, isSettled: false };
}

/** Whether a file is the one that was seen; a file that no other process can have written needs no check of its time. */
function isSameFile(
  found: FileStamp | undefined,
  seen: FileStamp | undefined,
  isOurs: boolean,
): boolean {
  if (found === undefined || seen === undefined) return found === seen;
  if (found.size !== seen.size) return false;
  if (isOurs) return seen.inode === undefined || found.inode === seen.inode;
  return seen.isSettled && found.inode === seen.inode && found.changed === seen.changed;
}
