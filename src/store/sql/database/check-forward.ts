import { WaymarkError } from '../../../core/error.ts';
import { hexOf } from '../values/bytes.ts';
import type { SqlValue } from './query.ts';

/** A damaged index can give the same rows again and again. Who reads it page by page would never end. */
export function checkForward(key: readonly SqlValue[], after: readonly SqlValue[]): void {
  const at = key.findIndex((value, index) => comparable(value) !== comparable(after[index]));
  const [next, last] = [comparable(key[at]), comparable(after[at])];
  if (next !== undefined && last !== undefined && next > last) return;
  throw new WaymarkError(
    'DATA_LOSS',
    'The rows of a table are not in order: the database is damaged. Restore a backup.',
  );
}

function comparable(value: SqlValue | undefined): string | number | undefined {
  if (value instanceof Uint8Array) return hexOf(value);
  return typeof value === 'number' || typeof value === 'string' ? value : undefined;
}
