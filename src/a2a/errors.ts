import { isWaymarkError, WaymarkError } from '../core/error.ts';

const codes: Readonly<Record<number, 'NOT_FOUND' | 'INVALID_ARGUMENT' | 'UNIMPLEMENTED'>> = {
  [-32_001]: 'NOT_FOUND',
  [-32_602]: 'INVALID_ARGUMENT',
  [-32_601]: 'UNIMPLEMENTED',
};

const longest = 400;

/** What a remote agent refused with. */
export function fromRpcError(
  name: string,
  { code, message }: { readonly code: number; readonly message: string },
): WaymarkError {
  return new WaymarkError(
    codes[code] ?? 'FAILED_PRECONDITION',
    `The remote agent "${name}" refused: ${message.slice(0, longest)}`,
  );
}

/** A remote agent that cannot be reached, or that answers with something else. */
export function unreachable(name: string, why: string, cause?: unknown): WaymarkError {
  return new WaymarkError('UNAVAILABLE', `The remote agent "${name}" ${why}`, {
    ...(cause !== undefined && { cause }),
    publicMessage: `The remote agent "${name}" is not available.`,
  });
}

/** Whether another attempt may succeed. */
export function isPassing(error: unknown): boolean {
  return isWaymarkError(error) && error.status === 'UNAVAILABLE';
}
