import type { Status } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { toWireError } from '../http/errors.ts';

/** The numbers of gRPC's canonical codes, which the development tools read. */
const codes: Record<Status, number> = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
};

/** An error as the development tools read it. */
export function toReflectionError(
  error: unknown,
  traceId: string,
): { readonly code: number; readonly message: string; readonly details: Json } {
  const { status, message, details } = toWireError(error);
  return {
    code: codes[status],
    message,
    details: { status, traceId, ...(details !== undefined && { details }) },
  };
}
