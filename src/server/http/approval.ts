import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';

/**
 * The answer to a tool that waits for approval, from `{ approved, reason }`; `undefined` for anything that is neither a clear yes
 * nor a clear no.
 */
export function decideApproval(interrupt: Interrupt, value: Json): InterruptAnswer | undefined {
  const { approved, reason } = isJsonObject(value) ? value : {};
  if (approved === false) {
    return interrupt.decline(typeof reason === 'string' && reason !== '' ? reason : undefined);
  }
  if (approved !== true) return undefined;
  return interrupt.approve();
}
