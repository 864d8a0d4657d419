import { WaymarkError } from '../../core/error.ts';
import type { Input } from '../../protocol/turn.ts';
import { headerOf } from './connection.ts';

/** The idempotency key in the header of a request. */
export function requestIdOf(c: Parameters<typeof headerOf>[0]): string | undefined {
  return headerOf(c, 'idempotency-key');
}

/** The input of a turn under its idempotency key, which the header or the body may name. They must not differ. */
export function underRequestId(
  input: Input,
  header: string | undefined,
  inBody?: string | undefined,
): Input {
  const requestId = header ?? inBody ?? input.requestId;
  if (requestId === undefined) return input;
  const isSame = (other: string | undefined): boolean => other === undefined || other === requestId;
  if (isSame(inBody) && isSame(input.requestId)) return { ...input, requestId };
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The turn has several request ids. Send one, as the header Idempotency-Key or as requestId in the body.',
  );
}
