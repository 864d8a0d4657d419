import { Branded } from '../../core/json/branded.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor } from '../../store/contract/store.ts';
import type { EventId } from '../spec/agent.ts';

/** On chunks. A WeakMap cost more than all else that a chunk does. */
class Noted extends Branded {
  #event: EventCursor;

  constructor(chunk: object, event: EventCursor) {
    super(chunk);
    this.#event = event;
  }

  static event(chunk: object): EventCursor | undefined {
    return #event in chunk ? chunk.#event : undefined;
  }

  static note(chunk: object, event: EventCursor): void {
    if (#event in chunk) chunk.#event = event;
    else new Noted(chunk, event);
  }
}

/** The id of an event: `attempt.sequence`. */
export function toEventId({ attempt, seq }: EventCursor): EventId {
  return `${attempt}.${seq}`;
}

/** The chunk with a note of which event it was, which changes nothing that others see of it. */
export function noteEventId(chunk: Chunk, event: EventCursor): Chunk {
  // What a transform has frozen may refuse a new field.
  const noted = Object.isExtensible(chunk) ? chunk : { ...chunk };
  Noted.note(noted, event);
  return noted;
}

/** The event that a chunk of a running turn is; `undefined` for chunks that are no events. */
export function eventOf(chunk: object): EventCursor | undefined {
  return Noted.event(chunk);
}
