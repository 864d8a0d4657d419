import { WeakPool } from '../weak-pool.ts';
import { type HashList, hashLists, longText, type TextChunk, textChunks } from './text-chunks.ts';

/** What is remembered of a long text: its chunks, the hash over them, and its length as JSON. */
export interface ChunkedText {
  readonly chunks: readonly TextChunk[];
  /** Lists of about 32 chunks. */
  readonly lists: readonly HashList[];
  readonly hash: string;
  readonly jsonLength: number;
}

// Strings cannot be keys of a WeakMap, so those used last are held, up to this many code units in all.
const mostHeld = 8 * 1024 * 1024;

const known = new Map<string, ChunkedText>();
let held = 0;

/** The chunks of a long text. Chunks of a former version are taken over where the texts are the same. */
export function chunkedText(text: string, former?: string): ChunkedText {
  const found = known.get(text);
  if (found !== undefined) {
    known.delete(text);
    known.set(text, found);
    return found;
  }
  const before = former === undefined ? [] : known.get(former)?.chunks;
  const chunks = textChunks(text, before).map(shared);
  const lists = hashLists(chunks.map((chunk) => chunk.hash));
  const hash = lists.at(-1)?.hash ?? '';
  const jsonLength = chunks.reduce((sum, chunk) => sum + chunk.jsonLength, 2);
  const chunked = { chunks, lists: lists.filter(({ level }) => level === 1), hash, jsonLength };
  remember(text, chunked);
  return chunked;
}

const pool = new WeakPool<TextChunk>();

function shared(chunk: TextChunk): TextChunk {
  return pool.get(chunk.hash, () => chunk);
}

function remember(text: string, chunked: ChunkedText): void {
  known.set(text, chunked);
  held += text.length;
  for (const oldest of known.keys()) {
    if (held <= mostHeld || oldest === text) return;
    known.delete(oldest);
    held -= oldest.length;
  }
}

/** Whether a text is long enough to be cut. */
export function isLongText(value: unknown): value is string {
  return typeof value === 'string' && value.length > longText;
}
