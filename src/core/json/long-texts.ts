import { hashLists, longText, type TextChunk, textChunks } from './text-chunks.ts';

/** What is remembered of a long text: its chunks, the hash over them, and its length as JSON. */
export interface ChunkedText {
  readonly chunks: readonly TextChunk[];
  readonly hash: string;
  readonly jsonLength: number;
}

// Strings cannot be keys of a WeakMap, so those used last are held, up to this many code units in all.
const mostHeld = 16 * 1024 * 1024;

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
  const chunks = textChunks(text, former === undefined ? [] : known.get(former)?.chunks);
  const hash = hashLists(chunks.map((chunk) => chunk.hash)).at(-1)?.hash ?? '';
  const chunked = { chunks, hash, jsonLength: JSON.stringify(text).length };
  remember(text, chunked);
  return chunked;
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
