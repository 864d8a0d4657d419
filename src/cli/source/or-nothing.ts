import { isWaymarkError } from '../../core/error.ts';

/** `undefined` for an agent without a store, and for a store without the capability. */
export async function orNothing<Value>(
  found: Promise<Value | undefined>,
): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'FAILED_PRECONDITION') return undefined;
    throw error;
  }
}
