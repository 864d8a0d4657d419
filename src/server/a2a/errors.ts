import { type ErrorBody, isWaymarkError, type Status } from '../../core/error.ts';
import { short, toWireError } from '../http/errors.ts';

/** Error codes of JSON-RPC and of A2A. */
export const codes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Any other refusal; the reason says which. */
  refused: -32_000,
  taskNotFound: -32_001,
  taskNotCancelable: -32_002,
  pushNotSupported: -32_003,
  unsupported: -32_004,
  versionNotSupported: -32_009,
} as const;

/** What A2A 1.0 calls the errors, in `data`. */
const reasons: Readonly<Record<number, string>> = {
  [codes.taskNotFound]: 'TASK_NOT_FOUND',
  [codes.taskNotCancelable]: 'TASK_NOT_CANCELABLE',
  [codes.pushNotSupported]: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  [codes.unsupported]: 'UNSUPPORTED_OPERATION',
  [codes.versionNotSupported]: 'VERSION_NOT_SUPPORTED',
};

/** Objects of the protocol. */
export type Fields = Readonly<Record<string, unknown>>;

/** Tells the requests of one client apart. */
export type RequestId = string | number | null;

/** An error that is answered to one request. */
export class A2aError extends Error {
  readonly code: number;
  /** The HTTP status, where the error is not a regular answer of a method. */
  readonly httpStatus: number;
  readonly status: Status | undefined;

  constructor(
    code: number,
    message: string,
    { httpStatus = 200, status }: { readonly httpStatus?: number; readonly status?: Status } = {},
  ) {
    super(message);
    this.code = code;
    this.httpStatus = httpStatus;
    this.status = status;
  }
}

export function errorMessage(
  id: RequestId,
  error: Pick<A2aError, 'code' | 'message' | 'status'>,
): Fields {
  const { code, message } = error;
  const data = errorInfo(error);
  return { jsonrpc: '2.0', id, error: { code, message, ...(data.length > 0 && { data }) } };
}

/** The reason of an error as A2A 1.0 says it, if it has one. */
export function errorInfo({
  code,
  status,
}: Pick<A2aError, 'code' | 'message' | 'status'>): readonly Fields[] {
  const reason = status ?? reasons[code];
  if (reason === undefined) return [];
  const type = 'type.googleapis.com/google.rpc.ErrorInfo';
  return [{ '@type': type, reason, domain: 'a2a-protocol.org' }];
}

const codeOf: Partial<Record<Status, number>> = {
  INVALID_ARGUMENT: codes.invalidParams,
  NOT_FOUND: codes.invalidParams,
  OUT_OF_RANGE: codes.invalidParams,
  FAILED_PRECONDITION: codes.unsupported,
  ABORTED: codes.unsupported,
  UNIMPLEMENTED: codes.unsupported,
  INTERNAL: codes.internal,
  UNKNOWN: codes.internal,
  DATA_LOSS: codes.internal,
};

/** The answer to whatever was thrown while a request was worked on. */
export function toA2aError(error: unknown): A2aError {
  return error instanceof A2aError ? error : fromErrorBody(toWireError(error));
}

/** An error of the server in the form of the protocol. */
export function fromErrorBody({ status, message }: ErrorBody): A2aError {
  return new A2aError(codeOf[status] ?? codes.refused, message, { status });
}

/** Refusals that clients and proxies handle by the HTTP status: wait, or authenticate. */
const httpRefusals: readonly Status[] = ['RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'UNAUTHENTICATED'];

export function isHttpRefusal(error: unknown): boolean {
  return isWaymarkError(error) && httpRefusals.includes(error.status);
}

/** The error for a task that this caller does not have, whether or not another one has it. */
export function unknownTask(taskId: string): A2aError {
  return new A2aError(codes.taskNotFound, `There is no task ${short(taskId)} here.`);
}
