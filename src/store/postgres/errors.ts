import { codeOf, isWaymarkError, type Status } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';

// By SQLSTATE, or by its class.
const faults: Readonly<Record<string, readonly [Status, string]>> = {
  '08': ['UNAVAILABLE', 'The connection to Postgres was lost. Try again.'],
  '57P': ['UNAVAILABLE', 'Postgres is shutting down or starting up. Try again.'],
  '28': ['PERMISSION_DENIED', 'Postgres refused the user or the password of the connection.'],
  '42501': [
    'PERMISSION_DENIED',
    'The database user may not do this. Let it create the store’s schema, or use a user that may.',
  ],
  '3D000': [
    'FAILED_PRECONDITION',
    'There is no such database. Create it, or connect to another one.',
  ],
  '25006': [
    'FAILED_PRECONDITION',
    'The database is read-only. Connect to the primary, or make it writable.',
  ],
  '53300': ['UNAVAILABLE', 'Postgres has no connection left. Use a smaller pool, or try again.'],
  '53': [
    'RESOURCE_EXHAUSTED',
    'Postgres is out of disk space or memory. Free some; what was saved is still there.',
  ],
  '22021': ['INVALID_ARGUMENT', 'A text holds a character that Postgres cannot store.'],
  '23505': [
    'ALREADY_EXISTS',
    'The id is taken: another process used it at the same moment. Use another id.',
  ],
  XX001: ['DATA_LOSS', 'The database is damaged. Restore it from a backup.'],
  XX002: ['DATA_LOSS', 'An index of the database is damaged. Reindex it, or restore a backup.'],
};

// The codes of node and pg; there is no SQLSTATE then. Without a connection, nothing was asked.
const noConnection = ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'EAI_AGAIN', 'ENOENT'];
const networkCodes = new Set([...noConnection, 'ECONNRESET', 'EPIPE', 'ETIMEDOUT']);
const networkTexts =
  /connection terminated|connection error|client has encountered|timeout exceeded when trying to connect|connection ended/i;

const unaskedCodes = new Set([...noConnection, '57P03', '53300']);
const unaskedTexts = /timeout exceeded when trying to connect/i;

function isUnasked(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return unaskedCodes.has(code);
  return error instanceof Error && unaskedTexts.test(error.message);
}

/** Whether the connection broke: what was being done may have been done or not. */
export function isLost(error: unknown): boolean {
  if (isWaymarkError(error)) return false;
  const code = codeOf(error);
  if (code !== undefined && (networkCodes.has(code) || /^(08|57P)/.test(code))) return true;
  return code === undefined && error instanceof Error && networkTexts.test(error.message);
}

/** Whether a function is not there, as after a restore into the schema. */
export function isFunctionMissing(error: unknown): boolean {
  return codeOf(error) === '42883';
}

/** Whether another transaction was in the way: the same again may succeed. */
export function isConflict(error: unknown): boolean {
  const code = codeOf(error);
  return code === '40001' || code === '40P01' || code === '23505' || code === '55P03';
}

/** Whether the user of the connection may not do this, or the database is read-only. */
export function isForbidden(error: unknown): boolean {
  const code = codeOf(error);
  return code === '42501' || code === '25006';
}

/** An error of pg, in our vocabulary. */
export function toStoreError(error: unknown): unknown {
  if (isWaymarkError(error)) return error;
  const given = codeOf(error);
  const lost = given?.startsWith('57P') ? '57P' : '08';
  const code = isLost(error) ? lost : given;
  if (code === undefined) return error;
  const found = faults[code] ?? faults[code.slice(0, 3)] ?? faults[code.slice(0, 2)];
  const [status, what] = found ?? ['INTERNAL', 'Postgres refused a statement of the store.'];
  const details = isUnasked(error) ? { written: false } : undefined;
  return storeFault(status, `${what}${reasonOf(error)}`, { cause: error, details });
}

function reasonOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? ` (${error.message})` : '';
}
