import { isWaymarkError, type Status, type WaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';

// Primary result codes of SQLite that say something a caller can act on.
const busy = 5;
const locked = 6;

const faults: Readonly<Record<number, readonly [Status, string]>> = {
  8: [
    'FAILED_PRECONDITION',
    'is read-only. Make the file and its folder writable for this process, or give another path.',
  ],
  10: [
    'UNAVAILABLE',
    'could not be read or written: the disk gave an error. Check the disk, then try again.',
  ],
  11: [
    'DATA_LOSS',
    'is damaged. Restore it from a backup, or save what can be read with "sqlite3 .recover".',
  ],
  13: [
    'RESOURCE_EXHAUSTED',
    'cannot grow: the disk is full, or "maxSize" is reached. Make room, then try again; nothing that was saved is lost.',
  ],
  14: [
    'FAILED_PRECONDITION',
    'cannot be opened. Check that its folder exists and that this process may write to it.',
  ],
  26: ['DATA_LOSS', 'is not a SQLite database, or is damaged. Check the path.'],
};

const full = 13;

// SQLITE_IOERR_WRITE, the extended code of a file that may not grow: what was to be written certainly is not.
const notWritten = 778;

/** The primary result code of an error that SQLite gave. */
function codeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  const { errcode } = error;
  if (errcode === notWritten) return full;
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

/** Whether another connection was in the way. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code === busy || code === locked;
}

/** An error of SQLite, in our vocabulary. */
export function toStoreError(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (isWaymarkError(error) || code === undefined) return error;
  const [status, what] = faults[code] ?? ['INTERNAL', 'refused a statement of the store.'];
  const reason = error instanceof Error ? ` (${error.message})` : '';
  return storeFault(status, `The database "${path}" ${what}${reason}`, { cause: error });
}

export function stillBusy(path: string, waited: number, cause: unknown): WaymarkError {
  return storeFault(
    'UNAVAILABLE',
    `The database "${path}" was held by another process for ${Math.round(waited)} ms. Try again.`,
    { cause, details: { written: false } },
  );
}
