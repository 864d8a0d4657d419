import { isWaymarkError } from '../../core/error.ts';
import type { Output } from '../../protocol/turn.ts';
import { toWireError } from './error-response.ts';

/** An output as remote clients get it. */
export function toPublicOutput(output: Output): Output {
  const { error } = output;
  return error && isWaymarkError(error) ? { ...output, error: toWireError(error) } : output;
}
