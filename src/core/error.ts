import type { Json } from './json.ts';

const statuses = [
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
] as const;

/** The fixed vocabulary of what can go wrong; the names are gRPC's canonical codes. */
export type Status = (typeof statuses)[number];

/** An error as data: what may leave the process. */
export interface ErrorBody {
  readonly status: Status;
  readonly message: string;
  readonly details?: Json;
}

/** The one error class: a canonical status, and a message that says what to do. */
export class WaymarkError extends Error {
  readonly status: Status;
  readonly details?: Json;

  constructor(
    status: Status,
    message: string,
    { details, cause }: { readonly details?: Json | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    if (details !== undefined) this.details = details;
  }

  /** The error as data, without its stack and its cause. */
  toJSON(): ErrorBody {
    const { status, message, details } = this;
    return details === undefined ? { status, message } : { status, message, details };
  }
}

// On the prototype, as for the built-in errors: an own `name` would show in every printed error.
Object.defineProperty(WaymarkError.prototype, 'name', { value: 'WaymarkError' });

const statusSet: ReadonlySet<unknown> = new Set(statuses);

/** Whether a value is one of the canonical statuses. */
export function isStatus(value: unknown): value is Status {
  return statusSet.has(value);
}

/** Whether something thrown is a WaymarkError, also one of another copy of this package. */
export function isWaymarkError(error: unknown): error is WaymarkError {
  return (
    typeof error === 'object' &&
    error !== null &&
    'name' in error &&
    error.name === 'WaymarkError' &&
    'status' in error &&
    isStatus(error.status) &&
    'message' in error &&
    typeof error.message === 'string'
  );
}

/** Whatever was thrown as data; the text of an unknown exception is left out, as it may hold anything. */
export function toErrorBody(error: unknown): ErrorBody {
  if (isWaymarkError(error)) {
    const { status, message, details } = error;
    return details === undefined ? { status, message } : { status, message, details };
  }
  switch (nameOf(error)) {
    case 'AbortError':
      return { status: 'CANCELLED', message: 'The operation was cancelled.' };
    case 'TimeoutError':
      return { status: 'DEADLINE_EXCEEDED', message: 'The operation took longer than allowed.' };
    default:
      return { status: 'INTERNAL', message: 'An unexpected error occurred.' };
  }
}

/** Whatever was thrown as a WaymarkError; what is not one yet becomes its cause. */
export function toWaymarkError(error: unknown): WaymarkError {
  if (isWaymarkError(error)) return error;
  const { status, message } = toErrorBody(error);
  return new WaymarkError(status, message, { cause: error });
}

/** Ends an exhaustive switch: a new member of the union becomes a type error here. */
export function assertNever(value: never): never {
  throw new WaymarkError('INTERNAL', `Unexpected value: ${describe(value)}.`);
}

// AbortError and TimeoutError come as DOMException, and from Node's own modules as plain errors.
function nameOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'name' in error ? error.name : undefined;
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}
