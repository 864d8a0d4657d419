import { isWaymarkError, type Status, type WaymarkError } from '../../../core/error.ts';
import { storeFault } from '../../rules/store-error.ts';

const meanings: Readonly<Record<string, readonly [Status, string]>> = {
  ENOSPC: ['RESOURCE_EXHAUSTED', 'the disk is full; make room and try again'],
  EDQUOT: ['RESOURCE_EXHAUSTED', 'the disk quota is used up; make room and try again'],
  EMFILE: ['RESOURCE_EXHAUSTED', 'too many files are open; raise the limit of the process'],
  EFBIG: ['RESOURCE_EXHAUSTED', 'the file would become too large; prune the session'],
  EROFS: ['PERMISSION_DENIED', 'the file system is read-only'],
  EACCES: ['PERMISSION_DENIED', 'access is denied; check the permissions of the directory'],
  EPERM: ['PERMISSION_DENIED', 'it is not permitted; check the permissions of the directory'],
  ENOTDIR: ['FAILED_PRECONDITION', 'a part of its path is no folder'],
  EISDIR: ['FAILED_PRECONDITION', 'there is a folder where a file should be'],
};

/** What went wrong with a file, under its name relative to the store's directory. What was there before is still there. */
export function diskError(cause: unknown, name: string): unknown {
  if (isWaymarkError(cause)) return cause;
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const [status, reason] = meanings[code] ?? ['UNAVAILABLE', `the system says ${code}`];
  return storeFault(status, `The file store cannot use "${name}": ${reason}.`, { cause });
}

/** The error for stored data that cannot be right. */
export function dataLoss(name: string, problem: string, cause?: unknown): WaymarkError {
  return storeFault(
    'DATA_LOSS',
    `"${name}" of the file store is damaged: ${problem}. Restore it from a backup or from version control.`,
    { cause },
  );
}

/** The error for a file that was changed without the lock between our read and our write. */
export function changedUnderLock(name: string): WaymarkError {
  return storeFault(
    'ABORTED',
    `"${name}" of the file store was changed by something that does not hold its lock. Try again.`,
  );
}

/** Whether a file or folder is simply not there. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** Whether something has the name already that a new file was to have. */
export function isThere(error: unknown): boolean {
  return codeOf(error) === 'EEXIST';
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
