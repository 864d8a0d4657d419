import { WaymarkError } from '../../core/error.ts';
import type { SqlValue } from '../sql/database/query.ts';

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
