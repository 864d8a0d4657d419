import type { EventId } from '../../api/types.ts';
import type { EventCursor } from '../../store/contract/store.ts';

/** The id of an event: `attempt.sequence`. */
export function toEventId({ attempt, seq }: EventCursor): EventId {
  return `${attempt}.${seq}`;
}
