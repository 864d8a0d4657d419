import { WaymarkError } from '../core/error.ts';
import type { EventCursor, RunEvent } from '../session/store.ts';
import type { EventId } from './agent.ts';

const ids = new WeakMap<object, EventId>();

/** The id of an event: `attempt.sequence`. */
export function toEventId({ attempt, seq }: EventCursor): EventId {
  return `${attempt}.${seq}`;
}

/** Where an event id points to. */
export function fromEventId(id: EventId): EventCursor {
  const [, attempt, seq] = /^(\d{1,9})\.(\d{1,9})$/.exec(id) ?? [];
  if (attempt === undefined || seq === undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'Not the id of an event. Expected "attempt.sequence", as the last event had it.',
    );
  }
  return { attempt: Number(attempt), seq: Number(seq) };
}

/** Notes which event a chunk was, without changing the chunk. */
export function noteEventId(chunk: object, event: RunEvent): void {
  ids.set(chunk, toEventId(event));
}

/** The id under which a chunk of a running turn can be come back to; `undefined` for chunks that are no events. */
export function eventIdOf(chunk: object): EventId | undefined {
  return ids.get(chunk);
}
