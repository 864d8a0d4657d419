import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor, RunEvent } from '../contract/store.ts';

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
  let before: Piece | undefined;
  for (const { seq, chunk } of events) {
    const piece = pieceOf(chunk);
    const isNext = last !== undefined && seq === last[0] + (last[2]?.length ?? 0) + 1;
    if (last !== undefined && piece !== undefined && isNext && isLike(piece, before)) {
      last[2] ??= [];
      last[2].push(piece.text);
    } else {
      last = [seq, chunk];
      before = piece;
      packed.push(last);
    }
  }
  return JSON.stringify(packed);
}

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

/** A chunk that is one piece of text and nothing else. */
export interface Piece {
  readonly role: unknown;
  readonly index: unknown;
  readonly text: string;
}

/** Whether two pieces differ in nothing but their text. */
function isLike(piece: Piece, other: Piece | undefined): boolean {
  return other !== undefined && piece.role === other.role && piece.index === other.index;
}

/** A chunk as a piece of text; `undefined` if it says anything else. */
function pieceOf(chunk: Chunk): Piece | undefined {
  const { modelChunk } = chunk;
  if (modelChunk === undefined) return undefined;
  const { role, index, content } = modelChunk;
  const part = content[0];
  if (content.length !== 1 || part === undefined || !('text' in part)) return undefined;
  for (const key in chunk) if (key !== 'modelChunk' && isWritten(chunk, key)) return undefined;
  for (const key in modelChunk) {
    const isNamed = key === 'role' || key === 'index' || key === 'content';
    if (!isNamed && isWritten(modelChunk, key)) return undefined;
  }
  for (const key in part) if (key !== 'text' && isWritten(part, key)) return undefined;
  return { role, index, text: part.text };
}

function withText(chunk: Chunk, text: string): Chunk {
  return { modelChunk: { ...chunk.modelChunk, content: [{ text }] } };
}

function isWritten(object: object, key: string): boolean {
  return object[key as keyof typeof object] !== undefined;
}
