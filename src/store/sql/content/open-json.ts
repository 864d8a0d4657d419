import { WaymarkError } from '../../../core/error.ts';
import type { SqlValue } from '../database/query.ts';
import type { Cipher } from './cipher.ts';

/** The content of a column. `DATA_LOSS` when it is not what was written. */
export function openJson(value: SqlValue, place: string, cipher: Cipher): unknown {
  return parseStored(cipher.decrypt(value, place), () => place.split('\0', 1)[0] ?? '');
}

/** The value of JSON text that the store wrote. */
export function parseStored(text: string, columnOf: () => string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new WaymarkError(
      'DATA_LOSS',
      `The value in ${columnOf()} is no longer JSON: the database was damaged or changed by hand. Restore it from a backup.`,
      { cause },
    );
  }
}
