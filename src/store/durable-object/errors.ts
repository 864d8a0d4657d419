import { isWaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import { codeNamedIn, faultOf } from '../sqlite/errors.ts';

/** An error of a database of Cloudflare, which names SQLite's code in its message. */
export function toStoreError(error: unknown, what: string): unknown {
  if (isWaymarkError(error) || !(error instanceof Error)) return error;
  if (error.message.includes('SQL is not enabled')) {
    return storeFault(
      'FAILED_PRECONDITION',
      'This Durable Object has no SQLite. Name its class in `new_sqlite_classes` of a migration; an existing class cannot change.',
      { cause: error },
    );
  }
  const code = codeNamedIn(error.message);
  return code === undefined ? error : faultOf(code, what, error);
}
