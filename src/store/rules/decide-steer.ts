import { failedPrecondition, invalid, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, jsonEqual } from '../../core/json/json.ts';
import { inboxLimits, type SteeringMessage } from '../contract/store.ts';

/** Decides about a message for a run: add it to the inbox, or nothing because it is there already. */
export function decideSteer(
  inbox: readonly SteeringMessage[],
  { id, message }: SteeringMessage,
): 'add' | 'known' {
  // A message that an earlier run has left may have the same id.
  const known = inbox.find((other) => other.id === id && other.runId === undefined);
  if (known !== undefined) {
    if (jsonEqual(known.message as unknown as Json, message as unknown as Json)) return 'known';
    throw invalid(`The id "${id.slice(0, 80)}" belongs to another message of this run.`);
  }
  const length = [...inbox, { id, message }].reduce((sum, each) => sum + lengthOf(each), 0);
  if (inbox.length < inboxLimits.messages && length <= inboxLimits.length) return 'add';
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The inbox of this run is full: it takes ${inboxLimits.messages} messages and ${inboxLimits.length} characters of JSON. Wait for the turn to end.`,
  );
}

function lengthOf({ message }: SteeringMessage): number {
  return JSON.stringify(message).length;
}

/** The part of an inbox that stays for the session's next run when a run ends that has taken some messages. */
export function leftInbox(
  inbox: readonly SteeringMessage[],
  taken: number,
  runId: string,
): readonly SteeringMessage[] {
  return inbox.slice(taken).map((message) => ({ runId, ...message }));
}

/** The error of a turn that would end while its inbox has messages that it has not taken. */
export function untaken(inbox: number): WaymarkError {
  return failedPrecondition(
    'The inbox of the run has messages that the turn has not taken. Read the inbox before ending the turn.',
    { details: { inbox } },
  );
}

/** Whether a commit was refused because of {@link untaken}. */
export function isUntaken(error: unknown): boolean {
  if (!isWaymarkError(error) || error.status !== 'FAILED_PRECONDITION') return false;
  return isJsonObject(error.details) && typeof error.details.inbox === 'number';
}
