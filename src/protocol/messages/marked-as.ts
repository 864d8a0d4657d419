import type { Message } from '../message.ts';

/** The last message of a turn with the id of the turn's snapshot, as in a state that was read. */
export function markedAs(message: Message, snapshotId: string | undefined): Message {
  if (snapshotId === undefined) return message;
  return { ...message, metadata: { ...message.metadata, snapshotId } };
}
