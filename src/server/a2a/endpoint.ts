import * as v from 'valibot';
import { jsonResponse } from '../http/json-response.ts';
import {
  answerFailure,
  checkMediaType,
  errorMessage,
  type Fields,
  type RequestId,
  readMessage,
  resultMessage,
} from '../http/json-rpc.ts';
import type { RequestContext } from '../http/server-context.ts';
import { sseFormat, sseJson } from '../stream/stream-response.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { a2aError, codes, fromErrorBody } from './errors.ts';
import { fromLegacyParams, legacyMethods, toLegacyEvent, toLegacyResult } from './legacy.ts';
import { a2aTypes, agentOf, checkVersion, perform, streamTask } from './perform.ts';

const rpcRequest = v.object({
  jsonrpc: v.literal('2.0'),
  id: v.nullish(v.union([v.string(), v.number()]), null),
  method: v.string(),
  params: v.nullish(v.record(v.string(), v.unknown()), {}),
});

/** Answers a POST of a client: one JSON-RPC request. */
export async function answer(server: A2aServer, c: RequestContext): Promise<Response> {
  let id: RequestId | null = null;
  try {
    const body = await readRequest(c);
    id = body.id ?? null;
    return await answerRequest(toRequest(server, c, body));
  } catch (error) {
    return answerFailure(c, error, { id, convert: fromErrorBody });
  }
}

async function readRequest(c: RequestContext): Promise<v.InferOutput<typeof rpcRequest>> {
  checkMediaType(c, a2aTypes);
  const body = await readMessage(c, 'request');
  const parsed = v.safeParse(rpcRequest, body, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const message = 'Expected one JSON-RPC 2.0 request.';
  throw a2aError(codes.invalidRequest, message, { httpStatus: 400 });
}

function toRequest(
  server: A2aServer,
  c: RequestContext,
  { id, method: given, params }: v.InferOutput<typeof rpcRequest>,
): A2aRequest {
  const agent = agentOf(server, c, given);
  const hint = 'is not supported. This server speaks 1.0 and 0.3.';
  checkVersion(c, /^(?:0\.3|1\.0|1)(?:\.\d{1,9})?$/, hint);
  const isLegacy = Object.hasOwn(legacyMethods, given);
  const method = isLegacy ? (legacyMethods[given] ?? given) : given;
  return {
    ...server,
    agent,
    version: isLegacy ? '0.3' : '1.0',
    id: id ?? null,
    method,
    params: isLegacy ? fromLegacyParams(method, params ?? {}) : (params ?? {}),
    c,
    headers: {},
  };
}

async function answerRequest(request: A2aRequest): Promise<Response> {
  const { method, version, id, headers } = request;
  const isLegacy = version === '0.3';
  const performed = await perform(request);
  const message = (result: unknown): Fields => resultMessage(id, result);
  if ('result' in performed) {
    const { result } = performed;
    return jsonResponse(message(isLegacy ? toLegacyResult(method, result) : result), { headers });
  }
  return await streamTask(request, performed, format, {
    event: (event) => message(isLegacy ? toLegacyEvent(event) : event),
    error: (error) => errorMessage(id, error),
  });
}

const format = sseFormat<Fields>((message) => sseJson(message));
