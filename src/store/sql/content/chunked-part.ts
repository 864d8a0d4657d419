import { packText } from '../../../core/json/packed-text.ts';
import { chunkedText, type TextChunk } from '../../../core/json/text-chunks.ts';
import type { Part } from '../../../protocol/message.ts';
import { withLongText } from '../../../session/long-part.ts';
import type { SqlValue } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import type { Cipher } from './cipher.ts';
import { bytesPlace, documentPlace } from './places.ts';

/**
 * A part with a long text as it stands in a list of artifacts: without the text, and with the digests of lists. A list is a
 * row that names about 32 chunks, and a chunk is a row with about 4,000 characters. Versions, branches and sessions share both.
 * For data in base64, a list is one row with the bytes of all its chunks, about 120 KB.
 */
export interface ChunkedPart {
  readonly rest: Part;
  readonly lists: readonly string[];
}

/** A large part, or a chunk of one, that is not stored yet. */
export interface PartWrite {
  readonly digest: Uint8Array;
  readonly body: SqlValue;
}

/** A list of chunks that is not stored yet. */
export interface ListWrite extends PartWrite {
  /** The digests of its chunks. */
  readonly chunks: readonly string[];
  /** The rows of those that are stored. */
  readonly known: ChunkRows;
  /** The packed text of all its chunks, which then have no rows. */
  readonly bytes?: Uint8Array;
}

/** The rows of the chunks of a list, by digest. */
export type ChunkRows = ReadonlyMap<string, number>;

/** The lists that are stored already: the rows of lists by digest, and the chunks of each list. */
export interface StoredLists {
  readonly rows: ReadonlyMap<string, number>;
  readonly chunks: ReadonlyMap<string, ChunkRows>;
}

/** Collects the chunks and lists of long texts in a list of artifacts that are not stored yet. */
export class ChunkWrites {
  readonly chunks = new Map<string, PartWrite>();
  readonly lists = new Map<string, ListWrite>();
  /** Lists that are stored already, and their chunks. */
  readonly known = new Map<string, number>();
  readonly knownChunks = new Map<string, ChunkRows>();
  readonly #stored: StoredLists;
  readonly #cipher: Cipher;
  #storedChunks: ChunkRows | undefined;

  constructor(stored: StoredLists, cipher: Cipher) {
    this.#stored = stored;
    this.#cipher = cipher;
  }

  /** Adds a long text. Gives the digests of its lists. */
  add(part: Part, text: string): ChunkedPart {
    const { chunks, lists } = chunkedText(text);
    const byHash = new Map(chunks.map((chunk) => [chunk.hash, chunk]));
    const chunksOf = (items: readonly string[]): readonly TextChunk[] =>
      items.map((item) => byHash.get(item) as TextChunk);
    const isData = 'media' in part;
    const write = (items: readonly string[]): Omit<ListWrite, 'digest'> =>
      isData ? this.#packed(chunksOf(items)) : this.#named(chunksOf(items));
    return {
      rest: withLongText(part, ''),
      lists: lists.map(({ hash, items }) => this.#list(hash, () => write(items))),
    };
  }

  #list(hash: string, write: () => Omit<ListWrite, 'digest'>): string {
    const digest = this.#cipher.digest('chunks', hash);
    const name = hexOf(digest);
    const row = this.#stored.rows.get(name);
    const rows = this.#stored.chunks.get(name);
    if (row !== undefined && rows !== undefined) {
      this.known.set(name, row);
      this.knownChunks.set(name, rows);
    } else if (!this.lists.has(name)) {
      this.lists.set(name, { digest, ...write() });
    }
    return name;
  }

  /** A list with the bytes of its chunks, if they are base64. */
  #packed(chunks: readonly TextChunk[]): Omit<ListWrite, 'digest'> {
    const packed = packText(chunks.map((chunk) => chunk.text).join(''));
    if (packed === undefined) return this.#named(chunks);
    const body = this.#cipher.encrypt('[]', documentPlace);
    const bytes = this.#cipher.encryptBytes(packed, bytesPlace);
    return { body, bytes, chunks: [], known: new Map() };
  }

  /** A list that names its chunks. */
  #named(items: readonly TextChunk[]): Omit<ListWrite, 'digest'> {
    const known = new Map<string, number>();
    const chunks = items.map((item) => this.#chunk(item, known));
    const body = this.#cipher.encrypt(JSON.stringify([{ parts: chunks }]), documentPlace);
    return { body, chunks, known };
  }

  #chunk({ hash, text }: TextChunk, known: Map<string, number>): string {
    const digest = this.#cipher.digest('chunk', hash);
    const name = hexOf(digest);
    this.#storedChunks ??= new Map([...this.#stored.chunks.values()].flatMap((rows) => [...rows]));
    const row = this.#storedChunks.get(name);
    if (row !== undefined) known.set(name, row);
    else if (!this.chunks.has(name)) {
      const body = this.#cipher.encrypt(JSON.stringify(text), documentPlace);
      this.chunks.set(name, { digest, body });
    }
    return name;
  }
}

/** Whether an entry of a stored list of artifacts is a part in chunks. */
export function isChunked(part: unknown): part is ChunkedPart {
  return typeof part === 'object' && part !== null && 'lists' in part && Array.isArray(part.lists);
}

/** The digests of the chunks that a list names. */
export function chunkNames(listText: string | undefined): readonly string[] {
  // Written above; a list that is damaged or missing shows in the hash of the state.
  const [entry] = JSON.parse(listText ?? '[]') as readonly { readonly parts?: string[] }[];
  return entry?.parts ?? [];
}

/** The texts of the rows that a list of artifacts names, by digest. */
export interface PartTexts {
  readonly texts: ReadonlyMap<string, string>;
  /** The texts of lists that were stored as bytes. */
  readonly packed: ReadonlyMap<string, string>;
}

/** A part from its lists and chunks. */
export function readChunked({ rest, lists }: ChunkedPart, { texts, packed }: PartTexts): Part {
  const textOf = (name: string): string => JSON.parse(texts.get(name) ?? '""');
  const pieces = lists.map(
    (list) => packed.get(list) ?? chunkNames(texts.get(list)).map(textOf).join(''),
  );
  return withLongText(rest, pieces.join(''));
}
