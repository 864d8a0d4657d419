import { sha256Hex } from '../platform.ts';

/** A piece of a long text, with the hash that names it. */
export interface TextChunk {
  readonly text: string;
  readonly hash: string;
  /** Characters of the text within a JSON string. */
  readonly jsonLength: number;
}

/** Texts up to this many UTF-16 code units are not cut. */
const longText = 4096;

const minLength = 1024;
const maxLength = 16_384;
// A cut is 16 times less likely before this length than after it, so that most chunks are about as long (FastCDC's
// normalized chunking).
const usualLength = 4096;
const earlyMask = 0x3fff_0000;
const lateMask = 0x03ff_0000;

// One number for each byte, from a fixed seed: where texts are cut is part of the hash, and must never change.
const gears: Uint32Array = makeGears();

function makeGears(): Uint32Array {
  const table = new Uint32Array(256);
  let seed = 0x9e37_79b9;
  for (let at = 0; at < table.length; at++) {
    seed = (seed + 0x6d2b_79f5) | 0;
    let value = Math.imul(seed ^ (seed >>> 15), seed | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    table[at] = (value ^ (value >>> 14)) >>> 0;
  }
  return table;
}

/**
 * Where the chunk that begins at `from` ends. The end depends on the text of the chunk alone, so an edit changes the chunks
 * around it, and those behind it are cut as before. A surrogate pair is never cut.
 */
export function chunkEnd(text: string, from: number): number {
  const left = text.length - from;
  if (left <= minLength) return text.length;
  const end = from + Math.min(left, maxLength);
  const usual = Math.min(from + usualLength, end);
  let at = from + minLength;
  let gear = 0;
  for (; at < usual; at++) {
    gear = (gear << 1) + (gears[foldedUnit(text, at)] as number);
    if ((gear & earlyMask) === 0) return wholePair(text, at + 1);
  }
  for (; at < end; at++) {
    gear = (gear << 1) + (gears[foldedUnit(text, at)] as number);
    if ((gear & lateMask) === 0) return wholePair(text, at + 1);
  }
  return wholePair(text, end);
}

function foldedUnit(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return (unit ^ (unit >>> 8)) & 0xff;
}

function wholePair(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const isPair =
    (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(end) & 0xfc00) === 0xdc00;
  return isPair ? end + 1 : end;
}

/** The hash of one chunk. A text that UTF-8 cannot say is hashed as its JSON. */
function hashChunk(text: string): string {
  return text.isWellFormed() ? sha256Hex(`t${text}`) : sha256Hex(`j${JSON.stringify(text)}`);
}

function chunkOf(piece: string): TextChunk {
  const json = JSON.stringify(piece);
  // V8 keeps the whole text for a slice of it; a parsed string stands alone.
  const text: string = JSON.parse(json);
  return { text, hash: hashChunk(text), jsonLength: json.length - 2 };
}

/**
 * The chunks of a text. What it has in common with a former version, at its beginning and at its end, is taken from that
 * one's chunks without being hashed again.
 */
export function textChunks(text: string, former: readonly TextChunk[] = []): readonly TextChunk[] {
  const chunks: TextChunk[] = [];
  let at = 0;
  let kept = 0;
  for (; kept < former.length; kept++) {
    const chunk = former[kept] as TextChunk;
    const end = at + chunk.text.length;
    // The last chunk of the former text ended where the text did, which need not be a cut.
    if (!text.startsWith(chunk.text, at) || (kept === former.length - 1 && end < text.length))
      break;
    chunks.push(chunk);
    at = end;
  }
  // Cuts of the former text that are cuts of this one too if the texts behind them are the same.
  const ends = commonEnd(text, at, former, kept);
  while (at < text.length) {
    const same = ends.get(at);
    if (same !== undefined) return chunks.concat(former.slice(same));
    const end = chunkEnd(text, at);
    chunks.push(chunkOf(text.slice(at, end)));
    at = end;
  }
  return chunks;
}

/** By place in the text: the former chunk that begins there, when all that follows is the same. */
function commonEnd(
  text: string,
  from: number,
  former: readonly TextChunk[],
  kept: number,
): ReadonlyMap<number, number> {
  const places = new Map<number, number>();
  let end = text.length;
  for (let place = former.length - 1; place >= kept; place--) {
    const piece = (former[place] as TextChunk).text;
    if (end - piece.length < from || !text.endsWith(piece, end)) break;
    end -= piece.length;
    places.set(end, place);
  }
  return places;
}

// A list of hashes is cut behind one that ends like this, so that lists are about 32 long.
const cut = /[0-7]0$/;
const maxListLength = 128;

/** A list of chunks or of lists, by their hashes. */
export interface HashList {
  readonly hash: string;
  readonly level: number;
  readonly items: readonly string[];
}

/** The lists over the chunks of a text, the lowest first; the last one is the root. */
export function hashLists(hashes: readonly string[]): readonly HashList[] {
  const lists: HashList[] = [];
  let items = hashes;
  for (let level = 1; ; level++) {
    const above: string[] = [];
    let from = 0;
    for (let at = 0; at < items.length; at++) {
      const isLast = at === items.length - 1;
      if (!isLast && !cut.test(items[at] ?? '') && at - from + 1 < maxListLength) continue;
      const group = items.slice(from, at + 1);
      const hash = sha256Hex(`${level}:${group.join(',')}`);
      lists.push({ hash, level, items: group });
      above.push(hash);
      from = at + 1;
    }
    if (above.length <= 1) return lists;
    items = above;
  }
}

/** Objects by the hash of their content, so that equal ones are held once, for as long as something else holds them. */
export class WeakPool<Item extends WeakKey> {
  readonly #items = new Map<string, WeakRef<Item>>();
  readonly #released = new FinalizationRegistry<string>((hash) => {
    if (this.#items.get(hash)?.deref() === undefined) this.#items.delete(hash);
  });

  /** The object with this hash: the one that is held, or a new one. */
  get(hash: string, make: () => Item): Item {
    const found = this.#items.get(hash)?.deref();
    if (found !== undefined) return found;
    const item = make();
    this.#items.set(hash, new WeakRef(item));
    this.#released.register(item, hash);
    return item;
  }
}

/** A long text that was cut before: its chunks, the hash over them, and its length as JSON. */
export interface ChunkedText {
  readonly chunks: readonly TextChunk[];
  /** Lists of about 32 chunks. */
  readonly lists: readonly HashList[];
  readonly hash: string;
  readonly jsonLength: number;
}

// Strings cannot be keys of a WeakMap, so those used last are held, up to this many code units in all.
const maxHeldLength = 8 * 1024 * 1024;

const chunkedTexts = new Map<string, ChunkedText>();
let heldLength = 0;

/** The chunks of a long text. Chunks of a former version are taken over where the texts are the same. */
export function chunkedText(text: string, former?: string): ChunkedText {
  const found = chunkedTexts.get(text);
  if (found !== undefined) {
    chunkedTexts.delete(text);
    chunkedTexts.set(text, found);
    return found;
  }
  const before = former === undefined ? [] : chunkedTexts.get(former)?.chunks;
  const chunks = textChunks(text, before).map((chunk) => chunkPool.get(chunk.hash, () => chunk));
  const lists = hashLists(chunks.map((chunk) => chunk.hash));
  const hash = lists.at(-1)?.hash ?? '';
  const jsonLength = chunks.reduce((sum, chunk) => sum + chunk.jsonLength, 2);
  const chunked = { chunks, lists: lists.filter(({ level }) => level === 1), hash, jsonLength };
  rememberText(text, chunked);
  return chunked;
}

const chunkPool = new WeakPool<TextChunk>();

function rememberText(text: string, chunked: ChunkedText): void {
  chunkedTexts.set(text, chunked);
  heldLength += text.length;
  for (const oldest of chunkedTexts.keys()) {
    if (heldLength <= maxHeldLength || oldest === text) return;
    chunkedTexts.delete(oldest);
    heldLength -= oldest.length;
  }
}

export function isLongText(value: unknown): value is string {
  return typeof value === 'string' && value.length > longText;
}
