import * as v from 'valibot';
import { type ErrorBody, hasStatus, type Status } from '../../core/error.ts';
import { errorHeaders, httpStatusOf, jsonResponse, toWireError } from './answer.ts';
import { readBody } from './body.ts';
import { headerOf } from './connection.ts';
import { logRequestFault, type RequestContext } from './server-context.ts';

/** Error codes of JSON-RPC, as far as the protocols share them. */
export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Any other refusal; the data says which. */
  refused: -32_000,
} as const;

/** Tells the requests of one client apart. */
export type RequestId = string | number;

/** An object of a protocol, as far as it is left open. */
export type Fields = Readonly<Record<string, unknown>>;

interface RpcErrorOptions {
  readonly data?: unknown;
  readonly status?: Status | undefined;
  readonly httpStatus?: number | undefined;
}

/** An error that is answered to one request. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  /** The status of the error that it was made from. */
  readonly status: Status | undefined;
  /** The HTTP status, where the error is not a regular answer of a method. */
  readonly httpStatus: number;

  constructor(code: number, message: string, options: RpcErrorOptions = {}) {
    super(message);
    this.code = code;
    this.data = options.data;
    this.status = options.status;
    this.httpStatus = options.httpStatus ?? 200;
  }
}

/** The answer to a request that failed; `null` where its id is not known. */
export function errorMessage(
  id: RequestId | null,
  { code, message, data }: Pick<RpcError, 'code' | 'message' | 'data'>,
): Fields {
  return { jsonrpc: '2.0', id, error: { code, message, data } };
}

export function resultMessage(id: RequestId | null, result: unknown): Fields {
  return { jsonrpc: '2.0', id, result };
}

const codeByStatus: Partial<Record<Status, number>> = {
  INVALID_ARGUMENT: rpcCodes.invalidParams,
  NOT_FOUND: rpcCodes.invalidParams,
  OUT_OF_RANGE: rpcCodes.invalidParams,
  INTERNAL: rpcCodes.internal,
  UNKNOWN: rpcCodes.internal,
  DATA_LOSS: rpcCodes.internal,
};

export function codeOf(status: Status): number {
  return codeByStatus[status] ?? rpcCodes.refused;
}

/** How a protocol writes an error of this server. */
export type ToRpcError = (body: ErrorBody) => RpcError;

/** The answer to anything that was thrown while a request was worked on. */
export function toRpcError(error: unknown, convert: ToRpcError): RpcError {
  return error instanceof RpcError ? error : convert(toWireError(error));
}

/** Refusals that clients and proxies handle by the HTTP status: wait, or authenticate. */
export function isHttpRefusal(error: unknown): boolean {
  return hasStatus(error, 'RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'UNAUTHENTICATED');
}

/** Logs an error that is not an answer of the protocol. */
export function logRpcFault(c: RequestContext, error: unknown): void {
  if (!(error instanceof RpcError)) logRequestFault(c, error);
}

/** Answers a POST whose message failed. Throws what is answered by its HTTP status. */
export function answerFailure(
  c: RequestContext,
  error: unknown,
  { id, convert }: { readonly id: RequestId | null; readonly convert: ToRpcError },
): Response {
  if (isHttpRefusal(error)) throw error;
  logRpcFault(c, error);
  const shown = toRpcError(error, convert);
  return jsonResponse(errorMessage(id, shown), { status: shown.httpStatus });
}

/** The answer to a refusal before the message was read, such as a wrong host. */
export function rpcRefusal(
  error: unknown,
  convert: ToRpcError,
  challenge?: string | undefined,
): Response {
  const body = toWireError(error);
  const isChallenge = body.status === 'UNAUTHENTICATED' && challenge !== undefined;
  return jsonResponse(errorMessage(null, convert(body)), {
    status: httpStatusOf(body),
    headers: { ...errorHeaders(body), ...(isChallenge && { 'www-authenticate': challenge }) },
  });
}

/** Refuses a body that is not said to be JSON, as a form of a web page could send it. */
export function checkMediaType(c: RequestContext, others: readonly string[] = []): void {
  const type = headerOf(c, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/json' || others.includes(type)) return;
  const message = 'Expected the content type application/json.';
  throw new RpcError(rpcCodes.invalidRequest, message, { httpStatus: 415 });
}

/** Reads the JSON of a message; what cannot be parsed is a parse error of JSON-RPC. */
export async function readMessage(c: RequestContext, what: string): Promise<unknown> {
  try {
    return await readBody(c, v.unknown(), what);
  } catch (error) {
    if (!hasStatus(error, 'INVALID_ARGUMENT')) throw error;
    throw new RpcError(rpcCodes.parseError, error.message, { httpStatus: 400 });
  }
}
