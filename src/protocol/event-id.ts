import { WaymarkError } from '../core/error.ts';

/** The id of an event: `attempt.sequence`, each of 1 to 9 digits. */
export const eventIdPattern = '^\\d{1,9}\\.\\d{1,9}$';

const eventId = new RegExp(eventIdPattern);

/** The attempt and the sequence number that an event id names; `INVALID_ARGUMENT` for anything else. */
export function parseEventId(id: unknown): { readonly attempt: number; readonly seq: number } {
  if (typeof id !== 'string' || !eventId.test(id)) {
    const shown = typeof id === 'string' ? JSON.stringify(id.slice(0, 40)) : typeof id;
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `${shown} is not the id of an event. Expected attempt.sequence, such as "1.42": the id of the last event that was read.`,
    );
  }
  const [attempt, seq] = id.split('.').map(Number);
  return { attempt: attempt ?? 0, seq: seq ?? 0 };
}
