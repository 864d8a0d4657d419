import { type ErrorBody, isWaymarkError, type Status } from '../../core/error.ts';
import { toWireError } from '../http/errors.ts';

/** Error codes of JSON-RPC and of MCP. */
export const codes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Any other refusal; `data.status` says which. */
  refused: -32_000,
  headerMismatch: -32_020,
  unsupportedVersion: -32_022,
} as const;

/** Tells the requests of one client apart. */
export type RequestId = string | number;

/** A result, or one entry of `_meta`: what the protocol leaves open. */
export type Fields = Readonly<Record<string, unknown>>;

/** An error that is answered to one request. */
export class McpError extends Error {
  readonly code: number;
  readonly data: unknown;
  /** The HTTP status, where the error is not a regular answer of a method. */
  readonly httpStatus: number;

  constructor(code: number, message: string, { data, httpStatus = 200 }: McpErrorOptions = {}) {
    super(message);
    this.code = code;
    this.data = data;
    this.httpStatus = httpStatus;
  }
}

interface McpErrorOptions {
  readonly data?: unknown;
  readonly httpStatus?: number;
}

export function errorMessage(
  requestId: RequestId | null,
  { code, message, data }: Pick<McpError, 'code' | 'message' | 'data'>,
): Fields {
  return {
    jsonrpc: '2.0',
    id: requestId,
    error: { code, message, ...(data !== undefined && { data }) },
  };
}

const codeOf: Partial<Record<Status, number>> = {
  INVALID_ARGUMENT: codes.invalidParams,
  NOT_FOUND: codes.invalidParams,
  OUT_OF_RANGE: codes.invalidParams,
  INTERNAL: codes.internal,
  UNKNOWN: codes.internal,
  DATA_LOSS: codes.internal,
};

/** The answer to whatever was thrown while a request was worked on. */
export function toMcpError(error: unknown): McpError {
  if (error instanceof McpError) return error;
  return fromErrorBody(toWireError(error));
}

/** An error of the server in the form of the protocol. */
export function fromErrorBody({ status, message, details }: ErrorBody): McpError {
  const data = { status, ...(details !== undefined && { details }) };
  return new McpError(codeOf[status] ?? codes.refused, message, { data });
}

/** Refusals that clients and proxies handle by the HTTP status: wait, or authenticate. */
const httpRefusals: readonly Status[] = ['RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'UNAUTHENTICATED'];

export function isHttpRefusal(error: unknown): boolean {
  return isWaymarkError(error) && httpRefusals.includes(error.status);
}
