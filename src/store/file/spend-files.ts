import * as v from 'valibot';
import { isWaymarkError } from '../../core/error.ts';
import { isJsonObject, parseJson } from '../../core/json/json.ts';
import type { Spend, SpendFilter } from '../contract/store.ts';
import { SpendCounters } from '../memory/spend.ts';
import type { SpendTable } from '../memory/tables.ts';
import { type SpendRow, type StoredReservation, spendCounters, spendRows } from '../rules/spend.ts';
import { checkLine, toLine } from './directory/checked-line.ts';
import type { Disk, FileReader } from './directory/disk.ts';
import { dataLoss } from './directory/disk-error.ts';
import { checkFormat, format } from './directory/format.ts';
import { spendFile, spendFolder } from './directory/layout.ts';
import type { Portion } from './sessions/journal.ts';

const count = v.pipe(v.number(), v.safeInteger());
const row = v.object({
  by_agent: v.string(),
  model: v.string(),
  currency: v.string(),
  calls: count,
  input: count,
  output: count,
  total: count,
  reasoning: count,
  cache_read: count,
  cache_write: count,
  micros: count,
} satisfies Record<keyof SpendRow, unknown>);

const line = v.object({
  waymark: v.number(),
  /** Empty: no owner. */
  owner: v.string(),
  agent: v.string(),
  session: v.string(),
  day: count,
  rows: v.array(row),
  /** A reservation of a model call. */
  reserved: v.optional(
    v.object({
      id: v.string(),
      holder: v.string(),
      amounts: v.array(
        v.object({ currency: v.exactOptional(v.string()), amount: count, isBound: v.boolean() }),
      ),
      expiresAt: count,
    }),
  ),
  /** Ids of reservations whose calls have ended. */
  settles: v.optional(v.array(v.string())),
});

/** The size in bytes from which on a file is rewritten with one line for each sum. */
const smallestCompacted = 2_000_000;

/**
 * What was spent: a file for each owner, with a line for each turn. It is written before the turn that it belongs to: if the
 * process dies between the two, the turn is lost, but what it has cost was spent all the same.
 */
export class SpendFiles implements SpendTable {
  readonly #disk: Disk;
  #unwritten: v.InferInput<typeof line>[] = [];
  #erased: string[] = [];
  /** The size of each file after it was rewritten last. */
  readonly #compactedSizes = new Map<string, number>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  add(spend: Spend, day: number): void {
    const { owner = '', agent, sessionId: session, settles } = spend;
    const rows = [...spendRows(spend)];
    this.#unwritten.push({
      waymark: format,
      ...{ owner, agent, session, day, rows },
      ...(settles !== undefined && { settles: [...settles] }),
    });
  }

  reserve({ owner, agent, session, day, amounts, ...rest }: StoredReservation): void {
    const reserved = { ...rest, amounts: [...amounts] };
    this.#unwritten.push({ waymark: format, owner, agent, session, day, rows: [], reserved });
  }

  eraseOwner(owner: string): void {
    this.#erased.push(owner);
  }

  /** Writes what was added since the last time. */
  save(): void {
    const [unwritten, erased] = [this.#unwritten, this.#erased];
    this.#unwritten = [];
    this.#erased = [];
    for (const owner of erased) this.#disk.remove(spendFile(owner));
    for (const content of unwritten) this.#append(spendFile(content.owner), content);
    for (const owner of new Set(unwritten.map(({ owner }) => owner))) this.#compactIfGrown(owner);
  }

  /** What the files say, of one owner or of all. */
  read({ owner }: SpendFilter): SpendCounters {
    const counters = new SpendCounters();
    const names = owner === undefined ? this.names() : [spendFile(owner ?? '')];
    for (const name of names) this.#readInto(counters, name);
    return counters;
  }

  /** All files. */
  names(): readonly string[] {
    const names = this.#disk.list(spendFolder).filter((name) => name.endsWith('.jsonl'));
    return names.map((name) => `${spendFolder}/${name}`);
  }

  #append(name: string, content: v.InferInput<typeof line>): void {
    const data = Buffer.from(`${toLine(content)}\n`);
    const end = this.#disk.open(name, ({ stamp: { size }, read }) => {
      // Behind the last line feed there may be the beginning of a line that a dead process left.
      for (let at = size; at > 0; at -= 1) {
        if (read(at - 1, 1)[0] === lineFeed) return { at, size };
      }
      return { at: 0, size };
    });
    if (end === undefined) this.#disk.create(name, data, { durable: true });
    else this.#disk.append(name, { ...end, durable: true, rest: Buffer.alloc(0) }, data);
  }

  #readInto(counters: SpendCounters, name: string): void {
    const text = this.#disk.readText(name) ?? '';
    // The last piece is empty, or a line that a dead process did not finish.
    const lines = text.split('\n').slice(0, -1);
    for (const [at, each] of lines.entries()) {
      const { rows, reserved, settles = [], ...whose } = parseLine(each, name, at + 1);
      const { owner, agent, session, day } = whose;
      for (const counts of rows) counters.addRow({ ...counts, owner, agent, session, day });
      if (reserved !== undefined) counters.reserve({ ...reserved, owner, agent, session, day });
      counters.settle(owner, settles);
    }
  }

  /** What was spent is saved already, so a file that cannot be rewritten fails no turn; `verify` reports a damaged one. */
  #compactIfGrown(owner: string): void {
    const name = spendFile(owner);
    const { size = 0 } = this.#disk.stamp(name) ?? {};
    if (size <= Math.max(smallestCompacted, 2 * (this.#compactedSizes.get(name) ?? 0))) return;
    try {
      this.#compact(owner, name);
    } catch (error) {
      if (!isWaymarkError(error)) throw error;
      // The next attempt is when it has doubled, so that not every turn reads it.
      this.#compactedSizes.set(name, size);
    }
  }

  /** Puts one line for each sum in place of many lines for turns. */
  #compact(owner: string, name: string): void {
    const counters = this.read({ owner: owner === '' ? null : owner });
    const sums = [...counters.rows({})].map(({ owner: _, agent, session, day, ...counts }) =>
      toLine({ waymark: format, owner, agent, session, day, rows: [counts] }),
    );
    const open = counters
      .reservations(owner)
      .map(({ owner: _, agent, session, day, ...reserved }) =>
        toLine({ waymark: format, owner, agent, session, day, rows: [], reserved }),
      );
    const text = `${[...sums, ...open].join('\n')}\n`;
    this.#disk.replace(name, text);
    this.#compactedSizes.set(name, Buffer.byteLength(text));
  }
}

const lineFeed = 10;

/** Reads a file of what was spent again, a portion at a time. */
export class SpendCheck {
  readonly #disk: Disk;
  readonly #name: string;
  #inode: bigint | undefined;
  /** Where the last whole line ends, and how many there are up to it. */
  #end = 0;
  #lines = 0;
  #size = 0;

  constructor(disk: Disk, name: string) {
    this.#disk = disk;
    this.#name = name;
  }

  /** Whether it ends with a whole line. */
  get isWhole(): boolean {
    return this.#end === this.#size;
  }

  /** Reads a portion; returns whether that was the rest of it. `DATA_LOSS` for a line that cannot be read. */
  refreshSome(some: Portion): boolean {
    return this.#disk.open(this.#name, (file) => this.#read(file, some)) ?? true;
  }

  #read({ stamp: { inode, size }, read }: FileReader, some: Portion): boolean {
    // Another file took its place, with one line for each sum.
    if (inode !== this.#inode || size < this.#end) [this.#end, this.#lines] = [0, 0];
    [this.#inode, this.#size] = [inode, size];
    const rest = size - this.#end;
    const part = read(this.#end, Math.min(some.bytes, rest));
    const bytes = part.includes(lineFeed) ? part : read(this.#end, rest);
    let start = 0;
    for (let count = 0; count < some.lines; count++) {
      const end = bytes.indexOf(lineFeed, start);
      if (end < 0) break;
      this.#lines++;
      parseLine(bytes.toString('utf8', start, end), this.#name, this.#lines);
      start = end + 1;
    }
    this.#end += start;
    return start === 0 || this.#end === size;
  }
}

function parseLine(text: string, name: string, number: number): v.InferOutput<typeof line> {
  const place = `line ${number}`;
  checkLine(Buffer.from(text), name, place, true);
  try {
    const content = parseJson(text, name);
    if (!isJsonObject(content)) throw new TypeError('it is no object');
    return v.parse(line, checkFormat(content, name));
  } catch (cause) {
    throw dataLoss(name, `${place} is not what this store writes`, cause);
  }
}

// Counters are checked one by one when a line is read; a new one belongs there as well.
spendCounters satisfies readonly (keyof v.InferOutput<typeof row>)[];
