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
  18: [
    'RESOURCE_EXHAUSTED',
    'cannot keep a value of this size. Make it shorter, or keep large content in files.',
  ],
  14: [
    'FAILED_PRECONDITION',
    'cannot be opened. Check that its folder exists and that this process may write to it.',
  ],
  26: ['DATA_LOSS', 'is not a SQLite database, or is damaged. Check the path.'],
};

const full = 13;

/** Primary result codes by the names that other drivers give: `SQLITE_IOERR_READ` is a kind of `SQLITE_IOERR`. */
const names: Readonly<Record<string, number>> = {
  BUSY: busy,
  LOCKED: locked,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: full,
  CANTOPEN: 14,
  TOOBIG: 18,
  NOTADB: 26,
};

/** The primary result code that a text names; 0 for one that says nothing to a caller, `undefined` if it names none. */
export function codeNamedIn(text: string): number | undefined {
  if (text.includes('SQLITE_IOERR_WRITE')) return full;
  const [, name] = /SQLITE_([A-Z]+)/.exec(text) ?? [];
  return name === undefined ? undefined : (names[name] ?? 0);
}

export function isBusyCode(code: number | undefined): boolean {
  return code === busy || code === locked;
}

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
  return isBusyCode(codeOf(error));
}

/** An error of SQLite, in our vocabulary. */
export function toStoreError(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (isWaymarkError(error) || code === undefined) return error;
  return faultOf(code, path, error);
}

/** The error for a primary result code of SQLite. */
export function faultOf(code: number, path: string, cause: unknown): WaymarkError {
  const [status, what] = faults[code] ?? ['INTERNAL', 'refused a statement of the store.'];
  const reason = cause instanceof Error ? ` (${cause.message})` : '';
  return storeFault(status, `The database "${path}" ${what}${reason}`, { cause });
}

export function stillBusy(path: string, waited: number, cause: unknown): WaymarkError {
  return storeFault(
    'UNAVAILABLE',
    `The database "${path}" was held by another process for ${Math.round(waited)} ms. Try again.`,
    { cause, details: { written: false } },
  );
}
