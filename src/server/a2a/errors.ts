import type { ErrorBody, Status } from '../../core/error.ts';
import { httpStatus } from '../../protocol/http-status.ts';
import { errorHeaders, jsonResponse, short, toWireError } from '../http/answer.ts';
import { codeOf, type Fields, RpcError, rpcCodes, toRpcError } from '../http/json-rpc.ts';

export const codes = {
  ...rpcCodes,
  taskNotFound: -32_001,
  taskNotCancelable: -32_002,
  pushNotSupported: -32_003,
  unsupported: -32_004,
  versionNotSupported: -32_009,
} as const;

/** The reasons of errors in A2A 1.0, in `data`. */
const reasons: Readonly<Record<number, string>> = {
  [codes.taskNotFound]: 'TASK_NOT_FOUND',
  [codes.taskNotCancelable]: 'TASK_NOT_CANCELABLE',
  [codes.pushNotSupported]: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  [codes.unsupported]: 'UNSUPPORTED_OPERATION',
  [codes.versionNotSupported]: 'VERSION_NOT_SUPPORTED',
};

/** An error that is answered to one request, with its reason as A2A 1.0 says it. */
export function a2aError(
  code: number,
  message: string,
  options: { readonly httpStatus?: number; readonly status?: Status } = {},
): RpcError {
  const reason = options.status ?? reasons[code];
  const type = 'type.googleapis.com/google.rpc.ErrorInfo';
  const data = reason && [{ '@type': type, reason, domain: 'a2a-protocol.org' }];
  return new RpcError(code, message, { ...options, data });
}

const unsupported: readonly Status[] = ['FAILED_PRECONDITION', 'ABORTED', 'UNIMPLEMENTED'];

export function fromErrorBody({ status, message }: ErrorBody): RpcError {
  const code = unsupported.includes(status) ? codes.unsupported : codeOf(status);
  return a2aError(code, message, { status });
}

/** The error for a task that this caller does not have, whether or not another one has it. */
export function unknownTask(taskId: string): RpcError {
  return a2aError(codes.taskNotFound, `There is no task ${short(taskId)} here.`);
}

export function httpRefusal(error: unknown): Response {
  const shown = toRpcError(error, fromErrorBody);
  return jsonResponse(errorBody(shown), {
    status: statusOf(shown),
    headers: errorHeaders(toWireError(error)),
  });
}

function statusOf({ code, status, httpStatus: given }: RpcError): number {
  if (given !== 200) return given;
  if (code === codes.taskNotFound) return 404;
  if (status === undefined) return code === codes.internal ? 500 : 400;
  return status === 'UNIMPLEMENTED' ? 400 : httpStatus[status];
}

export function errorBody(error: RpcError): Fields {
  const { message } = error;
  const code = statusOf(error);
  const status = error.status ?? (code === 404 ? 'NOT_FOUND' : 'FAILED_PRECONDITION');
  return { error: { code, status, message, details: error.data ?? [] } };
}
