import { httpStatus } from '../../protocol/http-status.ts';
import { errorHeaders, toWireError } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { type A2aError, codes, errorInfo, type Fields, toA2aError } from './errors.ts';

/** An error of the HTTP+JSON binding. */
export function httpRefusal(error: unknown): Response {
  const shown = toA2aError(error);
  return jsonResponse(errorBody(shown), {
    status: statusOf(shown),
    headers: errorHeaders(toWireError(error)),
  });
}

const notFound: number = codes.taskNotFound;
const internal: number = codes.internal;

function statusOf({ code, status, httpStatus: given }: A2aError): number {
  if (given !== 200) return given;
  if (code === notFound) return 404;
  if (status === undefined) return code === internal ? 500 : 400;
  return status === 'UNIMPLEMENTED' ? 400 : httpStatus[status];
}

/** The body of an error. */
export function errorBody(error: A2aError): Fields {
  const { message } = error;
  const code = statusOf(error);
  const status = error.status ?? (code === 404 ? 'NOT_FOUND' : 'FAILED_PRECONDITION');
  return { error: { code, status, message, details: errorInfo(error) } };
}
