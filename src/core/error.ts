import type { Json } from './json/types.ts';

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

/** The status of an error; the names are gRPC's canonical codes. */
export type Status = (typeof statuses)[number];

/** An error as data, in the form that remote clients and stores get. */
export interface ErrorBody {
  /** The kind of error. */
  readonly status: Status;
  /** The cause, and how to fix it. */
  readonly message: string;
  /** Data for the caller. */
  readonly details?: Json;
}

/** Options of a {@link WaymarkError}. */
export interface WaymarkErrorOptions {
  /** Data for the caller, remote or not. */
  readonly details?: Json | undefined;
  /** The thrown value; it stays in this process. */
  readonly cause?: unknown;
  /**
   * The text that remote clients and stores get in place of the message, for a message that contains hosts, paths or the text of
   * another error. @default the message
   */
  readonly publicMessage?: string | undefined;
}

/** The one error class: a canonical status, and a message that says what to do. */
export class WaymarkError extends Error {
  /** The kind of error. */
  readonly status: Status;
  /** Data for the caller, remote or not. */
  readonly details?: Json;
  /** The text that remote clients and stores get in place of the message. */
  declare readonly publicMessage?: string;

  constructor(
    status: Status,
    message: string,
    { details, cause, publicMessage }: WaymarkErrorOptions = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    if (details !== undefined) this.details = details;
    // Not enumerable: a printed error shows its message only.
    if (publicMessage !== undefined) {
      Object.defineProperty(this, 'publicMessage', { value: publicMessage });
    }
  }

  /** The error as remote clients get it: without its stack and cause, with its public message. */
  toJSON(): ErrorBody {
    return toErrorBody(this);
  }
}

// On the prototype, as for the built-in errors: an own `name` would show in every printed error.
Object.defineProperty(WaymarkError.prototype, 'name', { value: 'WaymarkError' });

/** The error for a request, an option or a value that cannot be meant. */
export function invalid(message: string, options?: WaymarkErrorOptions): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message, options);
}

/** The error for a call that is valid, but not in the state that things are in. */
export function failedPrecondition(message: string, options?: WaymarkErrorOptions): WaymarkError {
  return new WaymarkError('FAILED_PRECONDITION', message, options);
}

const statusSet: ReadonlySet<unknown> = new Set(statuses);

export function isStatus(value: unknown): value is Status {
  return statusSet.has(value);
}

/** Whether a thrown value is a `WaymarkError` or a `TurnError`, also from another copy of this package. */
export function isWaymarkError(error: unknown): error is WaymarkError {
  return (
    typeof error === 'object' &&
    error !== null &&
    'name' in error &&
    (error.name === 'WaymarkError' || error.name === 'TurnError') &&
    'status' in error &&
    isStatus(error.status) &&
    'message' in error &&
    typeof error.message === 'string'
  );
}

export function hasStatus(error: unknown, ...expected: readonly Status[]): error is WaymarkError {
  return isWaymarkError(error) && expected.includes(error.status);
}

/** The code that the system or a driver gave an error. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The error as remote clients, stored snapshots and other tools get it. A WaymarkError gives its status, public message and
 * details; any other error may contain private text, so none of it passes.
 */
export function toErrorBody(error: unknown): ErrorBody {
  if (!isWaymarkError(error)) return unknownError(error);
  const { status, details } = error;
  const message = publicMessageOf(error);
  return details === undefined ? { status, message } : { status, message, details };
}

// The type that a schema of the protocol infers.
type LooseErrorBody = {
  readonly status: string;
  readonly message: string;
  readonly details?: Json | undefined;
};

/** The error of an output for remote clients; one that came from a store or a server has that form already. */
export function toPublicError(error: LooseErrorBody): LooseErrorBody {
  return isWaymarkError(error) ? toErrorBody(error) : error;
}

export function publicMessageOf({ message, publicMessage }: WaymarkError): string {
  return typeof publicMessage === 'string' ? publicMessage : message;
}

function unknownError(error: unknown): ErrorBody {
  switch (nameOf(error)) {
    case 'AbortError':
      return { status: 'CANCELLED', message: 'The operation was cancelled.' };
    case 'TimeoutError':
      return { status: 'DEADLINE_EXCEEDED', message: 'The operation took longer than allowed.' };
    default:
      return { status: 'INTERNAL', message: 'An unexpected error occurred.' };
  }
}

// Errors that were made here only to give something thrown a status.
const wrappers = new WeakSet<WaymarkError>();

/** A thrown value as a WaymarkError with the same message; any other value becomes its cause. */
export function toWaymarkError(error: unknown): WaymarkError {
  if (isWaymarkError(error)) return error;
  const { status, message: publicMessage } = unknownError(error);
  const wrapper = new WaymarkError(status, messageOf(error), { cause: error, publicMessage });
  wrappers.add(wrapper);
  return wrapper;
}

/** The thrown value, without the wrapper of {@link toWaymarkError}. */
export function originalOf(error: unknown): unknown {
  return isWaymarkError(error) && wrappers.has(error) ? error.cause : error;
}

/** The text of a thrown value, in this process: the message of an error, or the value itself. */
export function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown === '' ? 'An empty string was thrown.' : thrown;
  if (typeof thrown === 'object' && thrown !== null && 'message' in thrown) {
    if (typeof thrown.message === 'string' && thrown.message !== '') return thrown.message;
  }
  if (thrown instanceof Error) return thrown.name;
  return `Thrown: ${describe(thrown)}`;
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

/** Causes and aggregated errors that are followed; chains may be circular. */
const maxCauses = 8;

/** A thrown value as text for the owner of the process: type, message, stack and causes. Never for a remote client. */
export function errorText(thrown: unknown): string {
  return textOf(thrown, maxCauses);
}

/** The error that was thrown first: below the errors of this package that say where it happened. */
export function rootOf(thrown: unknown): unknown {
  let root = originalOf(thrown);
  for (let left = maxCauses; left > 0; left--) {
    if (!isWaymarkError(root) || root.cause === undefined) break;
    root = originalOf(root.cause);
  }
  return root;
}

function textOf(thrown: unknown, left: number): string {
  const error = originalOf(thrown);
  if (!(error instanceof Error)) return messageOf(error);
  const { cause } = error;
  const inner = error instanceof AggregateError ? error.errors.slice(0, maxCauses) : [];
  // A cause that is no error says nothing more where the message has its text.
  const isTold = !(cause instanceof Error) && error.message.includes(messageOf(cause));
  const causes = left === 0 ? [] : [...(cause === undefined || isTold ? [] : [cause]), ...inner];
  return [
    ownText(error, cause instanceof Error),
    ...causes.map((each) => `Caused by: ${textOf(each, left - 1)}`),
  ].join('\n');
}

// Where an error of this package wraps another one, the other's stack is the one that leads to the fault.
function ownText(error: Error, isWrapper: boolean): string {
  const head = `${error.name}: ${error.message}`;
  if (isWaymarkError(error)) {
    const own = `${error.name} ${error.status}: ${error.message}`;
    return isWrapper ? own : `${own}${framesOf(error, head)}`;
  }
  return `${head}${framesOf(error, head)}`;
}

function framesOf({ stack = '' }: Error, head: string): string {
  if (stack.startsWith(head)) return stack.slice(head.length);
  // The message was changed after the error was made, or the engine writes stacks without it.
  const at = stack.search(/^\s+at /m);
  return at < 0 ? '' : `\n${stack.slice(at).replace(/^\n/, '')}`;
}
