import type { JsonObject } from '../../core/json/json.ts';
import type { Spend, SpendFilter } from '../contract/store.ts';
import { SpendCounters } from '../memory/spend.ts';
import type { SpendTable } from '../memory/tables.ts';
import { type StoredReservation, type StoredSpend, spendRows } from '../rules/spend.ts';
import { format, toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { Journal, type JournalReader } from './journal.ts';
import { extension, spendFile, spendFolder } from './layout.ts';

/** A line of a file. An empty owner is none. Other fields of the line are fields of its rows and of its reservation. */
interface Line {
  readonly owner: string;
  readonly rows: readonly object[];
  /** A reservation of a model call. */
  readonly reserved?: object;
  /** Ids of reservations whose calls have ended. */
  readonly settles?: readonly string[];
}

/** The size in bytes from which a file is rewritten with one line for each sum. */
const smallestRewritten = 2_000_000;

/** The spend of an owner: a journal with a line for each turn, and the sums of its lines. */
class SpendFile implements JournalReader {
  readonly journal: Journal;
  #counters = new SpendCounters();
  #owner = '';
  /** The error of its first damaged line. */
  #damage: unknown;
  #rewrittenSize = 0;

  constructor(disk: Disk, name: string) {
    this.journal = new Journal(disk, name, this);
  }

  /** The sums; `DATA_LOSS` when a line is damaged. */
  read(): SpendCounters {
    this.journal.refresh();
    if (this.#damage !== undefined) throw this.#damage;
    return this.#counters;
  }

  /** Adds a line. A damaged one fails no turn; `verify` reports it. */
  append(content: Line): void {
    this.journal.refresh();
    if (!this.journal.exists) this.journal.append(toLine({ waymark: format }));
    this.journal.append(toLine(content));
    this.#add(content);
    if (this.journal.size > Math.max(smallestRewritten, 2 * this.#rewrittenSize)) this.#rewrite();
  }

  reset(): void {
    this.#counters = new SpendCounters();
    this.#damage = undefined;
  }

  line(content: JsonObject): void {
    this.#add(content as unknown as Line);
  }

  damaged(error: unknown): void {
    this.#damage ??= error;
  }

  #add({ rows, reserved, settles = [], ...place }: Line): void {
    for (const row of rows) this.#counters.addRow({ ...place, ...row } as StoredSpend);
    if (reserved !== undefined) {
      this.#counters.reserve({ ...place, ...reserved } as StoredReservation);
    }
    this.#counters.settle(place.owner, settles);
    this.#owner = place.owner;
  }

  /** Replaces the lines of turns by one for each sum. */
  #rewrite(): void {
    const { size } = this.journal;
    // Read again: a line may have been damaged since.
    this.journal.forget();
    this.journal.refresh();
    // The next attempt is when it has doubled, so that not every turn reads it.
    this.#rewrittenSize = size;
    if (this.#damage !== undefined) return;
    const owner = this.#owner;
    const lines: readonly Line[] = [
      ...Array.from(this.#counters.rows({}), (row) => ({ owner, rows: [row] })),
      ...this.#counters.reservations(owner).map((reserved) => ({ owner, rows: [], reserved })),
    ];
    this.journal.rewrite([{ waymark: format }, ...lines].map(toLine));
    this.journal.refresh();
    this.#rewrittenSize = this.journal.size;
  }
}

/**
 * The spend of all owners. It is written before the turn that it belongs to: if the process dies between the two, the turn is
 * lost, but its cost was spent all the same.
 */
export class SpendFiles implements SpendTable {
  readonly #disk: Disk;
  readonly #files = new Map<string, SpendFile>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  add(spend: Spend, day: number): void {
    const { owner = '', agent, sessionId: session, settles } = spend;
    const rows = [...spendRows(spend)];
    const place = { owner, agent, session, day };
    this.#file(spendFile(owner)).append({ ...place, rows, ...(settles && { settles }) });
  }

  reserve(reserved: StoredReservation): void {
    const { owner } = reserved;
    this.#file(spendFile(owner)).append({ owner, rows: [], reserved });
  }

  eraseOwner(owner: string): void {
    this.#disk.remove(spendFile(owner));
    this.#files.delete(spendFile(owner));
  }

  *rows(filter: SpendFilter): Generator<StoredSpend> {
    const { owner } = filter;
    const names = owner === undefined ? this.names() : [spendFile(owner ?? '')];
    for (const name of names) yield* this.#file(name).read().rows(filter);
  }

  reservations(owner: string): readonly StoredReservation[] {
    return this.#file(spendFile(owner)).read().reservations(owner);
  }

  /** The names of all files. */
  names(): readonly string[] {
    const names = this.#disk.list(spendFolder).filter((name) => name.endsWith(extension));
    return names.map((name) => `${spendFolder}/${name}`);
  }

  forget(): void {
    this.#files.clear();
  }

  #file(name: string): SpendFile {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const file = new SpendFile(this.#disk, name);
    this.#files.set(name, file);
    return file;
  }
}
