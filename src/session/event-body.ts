import type { Chunk } from '../protocol/turn.ts';
import type { EventCursor, RunEvent } from './store.ts';

/**
 * Events of one attempt as they are stored: each with its number, and with the texts of those right behind it that differ
 * from it in their text alone. Most of an answer is such pieces; written out they take four times the room, and the time of
 * the turn they belong to.
 */
type Packed = [seq: number, chunk: Chunk, texts?: string[]];

/** The body that events are kept in, which must be of one attempt. */
export function packEvents(events: readonly RunEvent[]): string {
  const packed: Packed[] = [];
  let last: Packed | undefined;
  for (const { seq, chunk } of events) {
    const [first, pattern, texts = []] = last ?? [];
    const text = seq === (first ?? seq) + texts.length + 1 ? textLike(pattern, chunk) : undefined;
    if (last === undefined || text === undefined) {
      last = [seq, chunk];
      packed.push(last);
    } else if (last.length === 2) last.push([text]);
    else texts.push(text);
  }
  return JSON.stringify(packed);
}

/** The events of a body. */
export function unpackEvents(attempt: number, body: string): RunEvent[] {
  const packed = JSON.parse(body) as readonly Packed[];
  return packed.flatMap(([seq, chunk, texts = []]) => [
    { attempt, seq, chunk },
    ...texts.map((text, at) => ({ attempt, seq: seq + at + 1, chunk: withText(chunk, text) })),
  ]);
}

/** Whether an event comes after a place. */
export function isAfter(event: EventCursor, place: EventCursor | undefined): boolean {
  if (place === undefined || event.attempt > place.attempt) return true;
  return event.attempt === place.attempt && event.seq > place.seq;
}

/** The text of a piece that is like another one in all but its text. */
function textLike(pattern: Chunk | undefined, chunk: Chunk): string | undefined {
  const [before, piece] = [pieceOf(pattern), pieceOf(chunk)];
  if (before === undefined || piece === undefined) return undefined;
  return before.role === piece.role && before.index === piece.index ? piece.text : undefined;
}

interface Piece {
  readonly role: unknown;
  readonly index: unknown;
  readonly text: string;
}

/** A chunk that is one piece of text and nothing else. */
function pieceOf(chunk: Chunk | undefined): Piece | undefined {
  const model = chunk?.modelChunk;
  if (chunk === undefined || model === undefined || count(chunk) !== 1) return undefined;
  const { role, index, content } = model;
  const [part] = content;
  if (content.length !== 1 || part === undefined || !('text' in part)) return undefined;
  const named = (role === undefined ? 0 : 1) + (index === undefined ? 0 : 1);
  if (count(model) !== named + 1 || count(part) !== 1) return undefined;
  return { role, index, text: part.text };
}

function withText(chunk: Chunk, text: string): Chunk {
  return { modelChunk: { ...chunk.modelChunk, content: [{ text }] } };
}

/** How many fields an object has that are written. */
function count(object: object): number {
  let fields = 0;
  for (const key in object) if (object[key as keyof typeof object] !== undefined) fields++;
  return fields;
}
