import { isWaymarkError } from '../../../core/error.ts';
import { toReadError } from '../../rules/errors.ts';

/** Why something that is stored cannot be read; `undefined` when it can. */
export function problemOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    const told = toReadError(error);
    if (isWaymarkError(told) && told.status === 'DATA_LOSS') return told.message;
    throw told;
  }
}
