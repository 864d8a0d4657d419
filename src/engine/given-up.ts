import { WaymarkError } from '../core/error.ts';
import { toJson } from '../core/json/json.ts';
import type { RunRecord } from '../store/contract/store.ts';

/** Number of crashes after which a run moves to the dead-letter queue. */
export const defaultAttempts = 3;

/** Rejects an invalid number of attempts. */
export function checkAttempts(attempts: number): number {
  if (Number.isSafeInteger(attempts) && attempts > 0) return attempts;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `\`attempts\` of the engine must be a positive integer, not ${String(attempts)}.`,
  );
}

/** The error of a run that has crashed its process too often; `undefined` while it may be retried. */
export function givenUpError(
  { crashes = [] }: RunRecord,
  attempts: number,
): WaymarkError | undefined {
  if (crashes.length < attempts) return undefined;
  const details = {
    deadLetter: true,
    attempts: crashes.map(({ attempt, lastSeenAt }) => ({
      attempt,
      error: `The process died or lost its connection: no sign of life after ${lastSeenAt}.`,
    })),
  };
  return new WaymarkError(
    'INTERNAL',
    `The run has failed: its process died ${crashes.length} times without progress. Fix the cause, then retry the run; see \`details.attempts\`.`,
    { details: toJson(details, 'details') },
  );
}
