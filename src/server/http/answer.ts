import { type ErrorBody, invalid, toErrorBody, WaymarkError } from '../../core/error.ts';
import { isJsonObject, type JsonObject } from '../../core/json/json.ts';
import { type ErrorHttpStatus, httpStatus } from '../../protocol/http-status.ts';

const encoder = new TextEncoder();

/** A JSON answer that no cache keeps; its length is known, so that short ones are not compressed. */
export function jsonResponse(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const bytes = encoder.encode(JSON.stringify(value));
  return new Response(bytes, {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(bytes.byteLength),
      ...safetyHeaders,
      ...headers,
    },
  });
}

/**
 * The headers of every answer that has no others: browsers neither guess its type nor show it in a frame, run anything in
 * it, keep it, or let pages of other sites load it.
 */
export const safetyHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const entries = Object.entries(safetyHeaders);

/** Adds those headers that an answer does not have. */
export function addSafetyHeaders(headers: Headers): void {
  for (const [name, value] of entries) {
    if (!headers.has(name)) headers.set(name, value);
  }
}

/** The longest message that leaves the server; what echoes an input is cut. */
const maxMessageLength = 400;

/** An error as it leaves the server: a short message, and never the text of an unknown exception. */
export function toWireError(error: unknown): ErrorBody {
  const body = toErrorBody(error);
  if (body.message.length <= maxMessageLength) return body;
  return { ...body, message: `${body.message.slice(0, maxMessageLength - 1)}…` };
}

export function httpStatusOf({ status, details }: ErrorBody): ErrorHttpStatus {
  return isJsonObject(details) && details.tooLarge === true ? 413 : httpStatus[status];
}

/** The headers that belong to an error: when to try again, and how to say who you are. */
export function errorHeaders({ status, details }: ErrorBody): Record<string, string> {
  const retryAfter = isJsonObject(details) ? details.retryAfter : undefined;
  return {
    ...(typeof retryAfter === 'number' && { 'retry-after': String(retryAfter) }),
    ...(status === 'UNAUTHENTICATED' && { 'www-authenticate': 'Bearer' }),
  };
}

/** The response of the native protocol to anything that was thrown. */
export function errorResponse(error: unknown): Response {
  const body = toWireError(error);
  return jsonResponse(body, { status: httpStatusOf(body), headers: errorHeaders(body) });
}

/** The error for an id that is unknown to this caller, whether or not it exists for another owner. */
export function notFound(what: 'session' | 'snapshot' | 'artifact', id: string): WaymarkError {
  return new WaymarkError('NOT_FOUND', `There is no ${what} ${short(id)} here.`);
}

/** A value that was found for this caller, or NOT_FOUND. */
export function found<Value>(
  value: Value | undefined,
  what: 'session' | 'snapshot',
  id: string,
): Value {
  if (value !== undefined) return value;
  throw notFound(what, id);
}

/** The `limit` of a list, as the query of a request says it; `details` are those of the error. */
export function readLimit(
  text: string | undefined,
  most: number,
  details?: JsonObject,
): number | undefined {
  if (text === undefined) return undefined;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
  throw invalid(`limit must be a whole number from 1 to ${most}, not ${short(text)}.`, { details });
}

/** A text from outside, escaped and cut, to be put into a message. */
export function short(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 63)}…` : text);
}
