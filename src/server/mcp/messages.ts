import * as v from 'valibot';
import type { ErrorBody } from '../../core/error.ts';
import { codeOf, type RequestId, RpcError, rpcCodes } from '../http/json-rpc.ts';

/** Error codes of JSON-RPC and of MCP. A refusal has its status in `data.status`. */
export const codes = { ...rpcCodes, headerMismatch: -32_020, unsupportedVersion: -32_022 } as const;

export function fromErrorBody({ status, message, details }: ErrorBody): RpcError {
  return new RpcError(codeOf(status), message, { data: { status, details }, status });
}

const id = v.union([v.string(), v.number()]);
const params = v.optional(v.record(v.string(), v.unknown()), {});
const version = v.literal('2.0');

const request = v.object({ jsonrpc: version, id, method: v.string(), params });
const notification = v.object({
  jsonrpc: version,
  id: v.optional(v.never()),
  method: v.string(),
  params,
});
const reply = v.object({
  jsonrpc: version,
  id,
  result: v.optional(v.record(v.string(), v.unknown())),
  error: v.optional(v.record(v.string(), v.unknown())),
});

export interface RpcRequest extends v.InferOutput<typeof request> {}
interface RpcNotification extends v.InferOutput<typeof notification> {}
/** The reply of a client to a request of the server. */
export interface RpcReply extends v.InferOutput<typeof reply> {}

export type Incoming =
  | { readonly type: 'request'; readonly message: RpcRequest }
  | { readonly type: 'notification'; readonly message: RpcNotification }
  | { readonly type: 'reply'; readonly message: RpcReply };

/** Reads one message of a client. Batches are gone since 2025-06-18. */
export function parseIncoming(body: unknown): Incoming {
  if (v.is(request, body)) return { type: 'request', message: v.parse(request, body) };
  if (v.is(notification, body)) {
    return { type: 'notification', message: v.parse(notification, body) };
  }
  if (v.is(reply, body)) return { type: 'reply', message: v.parse(reply, body) };
  const reason = Array.isArray(body)
    ? 'Batches are not supported. Send one message per request.'
    : 'Expected one JSON-RPC 2.0 request, notification or response.';
  throw new RpcError(codes.invalidRequest, reason, { httpStatus: 400 });
}

/** The id of a body that may not be a valid request, for the answer to it. */
export function idOf(body: unknown): RequestId | null {
  const found = v.safeParse(v.object({ method: v.string(), id }), body);
  return found.success ? found.output.id : null;
}
