import * as v from 'valibot';
import type { JsonObject } from '../../../core/json/json.ts';
import type { ChunkedText } from '../../../core/json/long-texts.ts';
import { toLine } from '../directory/checked-line.ts';
import type { Disk } from '../directory/disk.ts';
import { dataLoss } from '../directory/disk-error.ts';
import { format } from '../directory/format.ts';
import { Journal, type JournalReader, type Portion } from './journal.ts';

const listLine = v.object({ list: v.string(), chunks: v.array(v.string()) });
const chunkLine = v.object({ chunk: v.string(), text: v.string() });

/** Where a line is in the file. */
interface Place {
  readonly at: number;
  readonly length: number;
}

/**
 * The long texts of the artifacts of a session and its forks, in chunks: one file of lines that is appended to. A line is a
 * chunk of about 4,000 characters, or a list that names about 32 chunks. Versions, branches and forks share both.
 */
export class ChunkFile implements JournalReader {
  readonly name: string;
  readonly #disk: Disk;
  readonly #newId: () => string;
  readonly #journal: Journal;
  readonly #lists = new Map<string, Place & { readonly chunks: readonly string[] }>();
  readonly #chunks = new Map<string, Place>();

  constructor(disk: Disk, name: string, newId: () => string) {
    this.name = name;
    this.#disk = disk;
    this.#newId = newId;
    this.#journal = new Journal(disk, name, this);
  }

  /** Whether it ended as it was left when it was last read. */
  get isWhole(): boolean {
    return this.#journal.isWhole;
  }

  /** Reads a portion of what is new; returns whether that was all of it. Throws when a line is damaged. */
  refreshSome(some: Portion): boolean {
    return this.#journal.refreshSome(some);
  }

  /** Writes what is new of some texts, and is on the disk when it returns. */
  write(texts: readonly ChunkedText[]): void {
    this.#journal.refresh();
    const lines = new Map<string, object>();
    for (const { chunks, lists } of texts) {
      const byHash = new Map(chunks.map((chunk) => [chunk.hash, chunk.text]));
      for (const { hash, items } of lists) {
        if (this.#lists.has(hash)) continue;
        for (const chunk of items) {
          if (!this.#chunks.has(chunk)) lines.set(chunk, { chunk, text: byHash.get(chunk) ?? '' });
        }
        lines.set(hash, { list: hash, chunks: items });
      }
    }
    if (lines.size > 0) this.#append([...lines.values()]);
  }

  /** The text that lists name. */
  read(lists: readonly string[]): string {
    this.#journal.refresh();
    const chunks = lists.flatMap((list) => this.#known(this.#lists, list).chunks);
    const text = this.#disk.open(this.name, ({ read }) => {
      const texts = chunks.map((chunk) => {
        const { at, length } = this.#known(this.#chunks, chunk);
        return textOf(read(at, length), this.name);
      });
      return texts.join('');
    });
    if (text === undefined) throw dataLoss(this.name, 'it is missing');
    return text;
  }

  /** Rewrites the file with what these lists need; removes it when that is nothing. */
  keep(lists: ReadonlySet<string>): void {
    this.#journal.refresh();
    const places = this.#needed(lists);
    if (places.length === this.#lists.size + this.#chunks.size) return;
    if (places.length === 0) this.#disk.remove(this.name);
    else {
      const head = Buffer.from(`${toLine(this.#head())}\n`);
      const kept = this.#disk.open(this.name, ({ read }) =>
        places.map(({ at, length }) => read(at, length)),
      );
      this.#disk.replace(this.name, Buffer.concat([head, ...(kept ?? []), Buffer.from('\n')]));
    }
    this.#journal.forget();
  }

  reset(): void {
    this.#lists.clear();
    this.#chunks.clear();
  }

  head(): void {}

  line(line: JsonObject, place: Place): void {
    if ('list' in line) {
      const { list, chunks } = v.parse(listLine, line);
      this.#lists.set(list, { ...place, chunks });
    } else {
      this.#chunks.set(v.parse(chunkLine, line).chunk, place);
    }
  }

  #append(lines: readonly object[]): void {
    const head = this.#journal.exists ? [] : [this.#head()];
    const before = this.#journal.size;
    this.#journal.append([...head, ...lines], { durable: false });
    // Before the session's journal names them.
    this.#disk.flush(this.name);
    let at = before;
    for (const line of [...head, ...lines]) {
      const length = Buffer.byteLength(toLine(line)) + 1;
      if (!head.includes(line as never)) this.line(line as JsonObject, { at, length });
      at += length;
    }
  }

  #head(): { readonly waymark: number; readonly id: string } {
    return { waymark: format, id: this.#newId() };
  }

  /** The lines that lists need, in the order of the file. */
  #needed(lists: ReadonlySet<string>): readonly Place[] {
    const named = [...lists].flatMap((list) => this.#lists.get(list) ?? []);
    const chunks = new Set(named.flatMap((list) => list.chunks));
    const places = [...chunks].flatMap((chunk) => this.#chunks.get(chunk) ?? []);
    return [...named, ...places].sort((a, b) => a.at - b.at);
  }

  #known<Found>(among: ReadonlyMap<string, Found>, hash: string): Found {
    const found = among.get(hash);
    if (found === undefined) throw dataLoss(this.name, `it lacks "${hash}"`);
    return found;
  }
}

function textOf(line: Buffer, name: string): string {
  try {
    return v.parse(chunkLine, JSON.parse(line.toString('utf8'))).text;
  } catch (cause) {
    throw dataLoss(name, 'a line was changed while it was in use', cause);
  }
}
