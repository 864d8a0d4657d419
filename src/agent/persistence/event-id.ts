import type { EventCursor } from '../../store/contract/store.ts';
import type { EventId } from '../spec/agent.ts';

/** The id of an event: `attempt.sequence`. */
export function toEventId({ attempt, seq }: EventCursor): EventId {
  return `${attempt}.${seq}`;
}
