import { type ErrorBody, invalid, type Status, WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { errorHeaders, httpStatusOf, jsonResponse, toWireError } from '../http/answer.ts';

export interface OpenAiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

/** Refuses a request; `param` names the field that is wrong, as the client sent it. */
export function badRequest(
  message: string,
  { param, code = 'invalid_value' }: { readonly param?: string; readonly code?: string } = {},
): WaymarkError {
  return invalid(message, { details: { code, param } });
}

/** The error for an id that this caller does not have, whether or not another one has it. */
export function unknownId(message: string, code: string, param?: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', message, { details: { code, param } });
}

const types: Partial<Record<Status, string>> = {
  UNAUTHENTICATED: 'authentication_error',
  PERMISSION_DENIED: 'permission_error',
  RESOURCE_EXHAUSTED: 'rate_limit_error',
  ABORTED: 'conflict_error',
  ALREADY_EXISTS: 'conflict_error',
  INTERNAL: 'server_error',
  UNKNOWN: 'server_error',
  DATA_LOSS: 'server_error',
  UNAVAILABLE: 'server_error',
  DEADLINE_EXCEEDED: 'server_error',
};

export function toOpenAiError({ status, message, details }: ErrorBody): OpenAiError {
  const { code, param, tooLarge } = isJsonObject(details) ? details : {};
  const isTooLarge = tooLarge === true;
  const type = isTooLarge ? undefined : types[status];
  return {
    message,
    type: type ?? 'invalid_request_error',
    param: typeof param === 'string' ? param : null,
    code: typeof code === 'string' ? code : isTooLarge ? 'request_too_large' : status.toLowerCase(),
  };
}

/** The answer to whatever was thrown; the HTTP status makes the SDK throw the class of this error. */
export function openAiErrorResponse(error: unknown): Response {
  const body = toWireError(error);
  return jsonResponse(
    { error: toOpenAiError(body) },
    { status: httpStatusOf(body), headers: errorHeaders(body) },
  );
}
