import { isWaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import { codeNamedIn, faultOf } from '../sqlite/errors.ts';

/** The name of the database in errors: a binding does not say it. */
export const place = 'D1';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '');

/** Whether a constraint of this name ended a batch. */
export function isFailedCheck(error: unknown, name: string): boolean {
  return messageOf(error).includes(`CHECK constraint failed: ${name}`);
}

/** Whether another process made the same tables in the same moment. */
export function isRace(error: unknown): boolean {
  return /already exists|duplicate column name/.test(messageOf(error));
}

const full = /maximum (account storage|DB size)|storage limit/i;
const refused = /overloaded|too many requests/i;

/** An error of D1 or of the way to it, in our vocabulary. */
export function toStoreError(error: unknown): unknown {
  if (isWaymarkError(error) || !(error instanceof Error)) return error;
  const { message } = error;
  const code = full.test(message) ? 13 : codeNamedIn(message);
  if (code !== undefined) return faultOf(code, place, error);
  const isAnswer = /^D1_|\bD1\b|Network connection lost|internal error|client disconnected/i;
  if (!isAnswer.test(message)) return error;
  // Otherwise what was asked for may have been done.
  const details = refused.test(message) ? { details: { written: false } } : {};
  return storeFault('UNAVAILABLE', `The database "${place}" did not answer (${message}).`, {
    cause: error,
    ...details,
  });
}
