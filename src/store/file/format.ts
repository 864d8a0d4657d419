import type { JsonObject } from '../../core/json.ts';
import { storeFault } from '../../session/store-fault.ts';
import { dataLoss } from './disk-error.ts';

/** The format that this version writes. Files of an older one are brought up, one step at a time, as they are read. */
export const format = 1;

/** Checks the `waymark` field that every file of the store begins with. */
export function checkFormat(head: JsonObject, name: string): JsonObject {
  const found = head.waymark;
  if (typeof found !== 'number') throw dataLoss(name, 'it does not say which format it has');
  if (found <= format) return head;
  throw storeFault(
    'FAILED_PRECONDITION',
    `"${name}" of the file store has format ${found}; this version of waymark reads up to ${format}. Install a newer version.`,
    { details: { format: found, supported: format } },
  );
}
