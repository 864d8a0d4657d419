import { hasStatus, WaymarkError } from '../../../core/error.ts';
import { toReadError } from '../../rules/errors.ts';
import type { SqlValue } from '../database/query.ts';
import type { Cipher } from './cipher.ts';

/** The content of a column. `DATA_LOSS` when it is not what was written. */
export function openJson(value: SqlValue, place: string, cipher: Cipher): unknown {
  return parseStored(cipher.decrypt(value, place), () => place.split('\0', 1)[0] ?? '');
}

/** A value as it is stored in a column. */
export function sealed(value: object | string | null, place: string, cipher: Cipher): SqlValue {
  return value === null ? null : cipher.encrypt(JSON.stringify(value), place);
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

/** The reason why something that is stored cannot be read; `undefined` when it can. */
export function problemOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return problemIn(error);
  }
}

/** The damage that an error reports. Any other error is thrown. */
export function problemIn(error: unknown): string {
  const told = toReadError(error);
  if (hasStatus(told, 'DATA_LOSS')) return told.message;
  throw told;
}
