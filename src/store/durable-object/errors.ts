import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { storeFault } from '../rules/errors.ts';
import type { SqlValue } from '../sql/database/query.ts';
import { codeNamedIn, faultOf } from '../sqlite/errors.ts';

/** Bytes of a row, which the platform limits. */
const maxRowSize = 2_000_000;

/** Refuses values that the platform would not store, whatever the limits of the machine that a test runs on. */
export function checkSize(values: readonly SqlValue[]): void {
  let size = 0;
  for (const value of values) {
    if (value instanceof Uint8Array) size += value.length;
    else if (typeof value === 'string') size += byteLength(value);
  }
  if (size <= maxRowSize) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `A row of ${size} bytes is larger than the 2 MB that a database of Cloudflare stores. Make the message or the state shorter, or keep large content in files and artifacts.`,
  );
}

// A character takes at most three bytes, so only long texts are encoded.
function byteLength(text: string): number {
  return text.length * 3 <= maxRowSize ? text.length : new TextEncoder().encode(text).length;
}

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
