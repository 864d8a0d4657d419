import {
  codeOf,
  failedPrecondition,
  isWaymarkError,
  type Status,
  WaymarkError,
} from '../core/error.ts';

const meanings: Readonly<Record<string, readonly [Status, string]>> = {
  ENOSPC: ['RESOURCE_EXHAUSTED', 'the disk is full'],
  EDQUOT: ['RESOURCE_EXHAUSTED', 'the disk quota is exceeded'],
  EFBIG: ['RESOURCE_EXHAUSTED', 'the file would become too large'],
  EMFILE: ['RESOURCE_EXHAUSTED', 'the process has too many open files'],
  EROFS: ['PERMISSION_DENIED', 'the file system is read-only'],
  EACCES: ['PERMISSION_DENIED', 'access is denied; check the permissions'],
  EPERM: ['PERMISSION_DENIED', 'it is not permitted; check the permissions'],
  EBUSY: ['UNAVAILABLE', 'another program uses it; close that, then try again'],
  ETXTBSY: ['UNAVAILABLE', 'it is being executed; end that program, then try again'],
  ENOENT: ['NOT_FOUND', 'it does not exist'],
  ENOTDIR: ['FAILED_PRECONDITION', 'a part of its path is no folder'],
  EISDIR: ['FAILED_PRECONDITION', 'it is a folder'],
  ELOOP: ['PERMISSION_DENIED', 'it is a link, which is not followed'],
  ENAMETOOLONG: ['INVALID_ARGUMENT', 'its name is too long'],
  EXDEV: ['FAILED_PRECONDITION', 'it is on another file system than the folder'],
};

/** The error for a path of a workspace, relative to its folder. */
export function pathError(cause: unknown, path: string, workspace: string): unknown {
  if (isWaymarkError(cause)) return cause;
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const [status, reason] = meanings[code] ?? ['UNAVAILABLE', `the system says ${code}`];
  const what = path === '' ? 'its folder' : JSON.stringify(path);
  const advice = path === '' && code === 'ENOENT' ? ' Create it first.' : '';
  const message = `Workspace "${workspace}" cannot use ${what}: ${reason}.${advice}`;
  return new WaymarkError(status, message, { cause });
}

/** The error for a path that is no longer as the last scan found it. */
export function changedMeanwhile(path: string, workspace: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `${JSON.stringify(path)} in workspace "${workspace}" was changed meanwhile. Nothing was written; try again.`,
  );
}

/** The error for something that no scan lists, at a path that is needed. */
export function inTheWay(path: string, workspace: string): WaymarkError {
  return failedPrecondition(
    `${JSON.stringify(path)} in workspace "${workspace}" is in the way, and is not saved in any snapshot. Move it away, then try again. Nothing was written.`,
  );
}

/** The error for a tree whose content does not fit its hash. */
export function wrongContent(path: string, workspace: string): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The stored content of ${JSON.stringify(path)} for workspace "${workspace}" does not match its hash. Nothing was written.`,
  );
}

/** The error for a folder that another run has locked. */
export function busy(runId: string | undefined, workspace: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Workspace "${workspace}" is busy with run "${runId ?? 'unknown'}". Try again when the run has ended, or abort it. To let turns wait for each other, define the agent with \`concurrency: 'wait'\`.`,
    { details: { running: runId ?? null } },
  );
}

/** The error for a lock that was taken over. */
export function lostLock(workspace: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Another process has taken over the lock of workspace "${workspace}", because this one was silent for too long or its run was taken over.`,
  );
}

/** The error for a change without the lock. */
export function notLocked(workspace: string): WaymarkError {
  return failedPrecondition(
    `Lock workspace "${workspace}" before you change it. A turn of an agent does that.`,
  );
}
