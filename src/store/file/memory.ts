import type { JsonObject } from '../../core/json/json.ts';
import {
  dropVersions,
  type MemoryChange,
  MemoryRows,
  type MemoryTable,
} from '../memory/memory-rows.ts';
import { format, toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { Journal, type JournalReader } from './journal.ts';
import { extension, memoryFile, memoryFolder } from './layout.ts';

/** A line of a file. An empty owner is none. */
interface Line extends MemoryChange {
  readonly owner: string;
}

/** The memory that an owner has written: a journal with a line for each turn. */
class MemoryFile implements JournalReader {
  readonly journal: Journal;
  owner: string | undefined;
  #rows = new MemoryRows();
  /** The error of its first damaged line. */
  #damage: unknown;

  constructor(disk: Disk, name: string) {
    this.journal = new Journal(disk, name, this);
  }

  /** The rows; `DATA_LOSS` when a line is damaged. */
  read(): MemoryRows {
    this.journal.refresh();
    if (this.#damage !== undefined) throw this.#damage;
    return this.#rows;
  }

  append(line: Line): void {
    this.journal.refresh();
    if (!this.journal.exists) this.journal.append(toLine({ waymark: format }));
    this.journal.append(toLine(line));
    this.#add(line);
  }

  /** Writes what is left. */
  rewrite(): void {
    const { owner = '' } = this;
    const { places, versions, notes } = this.#rows.all();
    const lines: readonly Line[] = [
      { owner, places },
      ...versions.map((version) => ({ owner, versions: [version] })),
      ...notes.map((note) => ({ owner, notes: [note] })),
    ];
    this.journal.rewrite([{ waymark: format }, ...lines].map(toLine));
    this.journal.refresh();
  }

  reset(): void {
    this.#rows = new MemoryRows();
    this.#damage = undefined;
  }

  line(content: JsonObject): void {
    this.#add(content as unknown as Line);
  }

  damaged(error: unknown): void {
    this.#damage ??= error;
  }

  #add({ owner, ...change }: Line): void {
    if (owner === undefined) return;
    this.owner = owner;
    this.#rows.apply(change);
  }
}

/**
 * The memory of all owners. It is written before the turn that it belongs to: if the process dies between the two, no snapshot names what
 * the turn remembered, so no reader sees it.
 */
export class MemoryFiles implements MemoryTable {
  readonly #disk: Disk;
  readonly #files = new Map<string, MemoryFile>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  of(owner: string): MemoryRows {
    const file = this.#file(memoryFile(owner));
    file.owner = owner;
    return file.read();
  }

  owners(): readonly string[] {
    return this.names().flatMap((name) => {
      const file = this.#file(name);
      file.read();
      return file.owner ?? [];
    });
  }

  apply(owner: string, change: MemoryChange): void {
    this.#file(memoryFile(owner)).append({ owner, ...change });
  }

  removed(owner: string): void {
    this.#file(memoryFile(owner)).rewrite();
  }

  eraseOwner(owner: string): void {
    const name = memoryFile(owner);
    if (this.#disk.stat(name) === undefined) return;
    dropVersions(this, this.of(owner).all().versions);
    this.#disk.remove(name);
    this.#files.delete(name);
  }

  /** The names of all files. */
  names(): readonly string[] {
    const names = this.#disk.list(memoryFolder).filter((name) => name.endsWith(extension));
    return names.map((name) => `${memoryFolder}/${name}`);
  }

  forget(): void {
    this.#files.clear();
  }

  #file(name: string): MemoryFile {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const file = new MemoryFile(this.#disk, name);
    this.#files.set(name, file);
    return file;
  }
}
