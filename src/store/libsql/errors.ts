import { isWaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import { codeNamedIn, faultOf, isBusyCode } from '../sqlite/errors.ts';

/** The name of an error of libSQL. */
function nameOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Whether a transaction of this or another process was in the way, so that nothing was done. */
export function isBusy(error: unknown): boolean {
  const name = nameOf(error) ?? '';
  // A client with one connection, as for an embedded replica.
  return name === 'TRANSACTION_ACTIVE' || isBusyCode(codeNamedIn(name));
}

/** An error of libSQL or of its connection, in our vocabulary. */
export function toStoreError(error: unknown, address: string): unknown {
  if (isWaymarkError(error)) return error;
  const name = nameOf(error);
  const code = codeNamedIn(name ?? '') ?? codeOfOpening(error);
  if (code !== undefined) return faultOf(code, address, error);
  if (name === undefined && !isFailedFetch(error)) return error;
  const reason = error instanceof Error ? ` (${error.message})` : '';
  const status = httpStatusOf(error);
  if (status === 401 || status === 403) {
    return storeFault(
      'PERMISSION_DENIED',
      `The database "${address}" refused access${reason}. Check the "authToken".`,
      { cause: error },
    );
  }
  // The connection broke, or the server had an error: what was asked for may have been done.
  return storeFault('UNAVAILABLE', `The database "${address}" did not answer${reason}.`, {
    cause: error,
  });
}

/** A file that cannot be opened is an error without a name: `ConnectionFailed("Unable to open …: 14")`. */
function codeOfOpening(error: unknown): number | undefined {
  const message = error instanceof Error ? error.message : '';
  const [, code] = /^ConnectionFailed\(.*: (\d+)"\)$/s.exec(message) ?? [];
  return code === undefined ? undefined : Number(code) & 0xff;
}

function isFailedFetch(error: unknown): boolean {
  return error instanceof TypeError && error.message === 'fetch failed';
}

/** The HTTP status that a server answered with, which the client keeps in the cause. */
function httpStatusOf(error: unknown): number | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  const status = typeof cause === 'object' && cause !== null && 'status' in cause && cause.status;
  return typeof status === 'number' ? status : undefined;
}
