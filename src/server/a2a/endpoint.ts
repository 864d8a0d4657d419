import * as v from 'valibot';
import { jsonResponse } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import {
  answerFailure,
  checkMediaType,
  errorMessage,
  type Fields,
  isHttpRefusal,
  logRpcFault,
  type RequestId,
  readMessage,
  resultMessage,
} from '../http/json-rpc.ts';
import type { RequestContext } from '../http/server-context.ts';
import { sseFormat, sseJson } from '../stream/stream-response.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { a2aError, codes, errorBody, fromErrorBody, httpRefusal } from './errors.ts';
import { type HttpRoute, httpRoutes } from './http-routes.ts';
import { fromLegacyParams, legacyMethods, toLegacyEvent, toLegacyResult } from './legacy.ts';
import { a2aTypes, agentOf, type Binding, checkVersion, perform, streamTask } from './perform.ts';

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
    const { method: given, params } = body;
    id = body.id ?? null;
    const agent = agentOf(server, c, given);
    const hint = 'is not supported. This server speaks 1.0 and 0.3.';
    checkVersion(c, /^(?:0\.3|1\.0|1)(?:\.\d{1,9})?$/, hint);
    const isLegacy = Object.hasOwn(legacyMethods, given);
    const method = isLegacy ? (legacyMethods[given] ?? given) : given;
    const shared = { ...server, agent, method, c, headers: {} };
    const request: A2aRequest = isLegacy
      ? { ...shared, version: '0.3', params: fromLegacyParams(method, params ?? {}) }
      : { ...shared, version: '1.0', params: params ?? {} };
    return await answerRequest(request, {
      format: rpcFormat,
      result: (result) => resultMessage(id, isLegacy ? toLegacyResult(method, result) : result),
      event: (event) => resultMessage(id, isLegacy ? toLegacyEvent(event) : event),
      error: (error) => errorMessage(id, error),
    });
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

async function answerRequest(request: A2aRequest, binding: Binding): Promise<Response> {
  const performed = await perform(request);
  if (!('result' in performed)) return await streamTask(request, performed, binding);
  return jsonResponse(binding.result(performed.result), { headers: request.headers });
}

const rpcFormat = sseFormat<Fields>((message) => sseJson(message));

/** How HTTP+JSON writes answers: as they are. */
const httpBinding: Binding = {
  format: sseFormat((message) => sseJson(message, 'error' in message ? 'error' : undefined)),
  result: (result) => result,
  event: (event) => event,
  error: errorBody,
};

const object = v.record(v.string(), v.unknown());

/** Answers a request of the HTTP+JSON binding of A2A 1.0. */
export async function answerHttp(
  server: A2aServer,
  c: RequestContext,
  method: string,
): Promise<Response> {
  const route = httpRoutes[method] as HttpRoute;
  try {
    const agent = agentOf(server, c, method);
    const hint = 'is not supported here. HTTP+JSON speaks 1.0; clients of 0.3 use JSON-RPC.';
    checkVersion(c, /^1(?:\.\d{1,9}){0,2}$/, hint);
    const body = route.hasBody ? await bodyOf(c) : {};
    const params = { ...queryOf(c, route), ...body, ...route.params?.(c) };
    const request = { ...server, agent, version: '1.0', method, params, c, headers: {} } as const;
    return await answerRequest(request, httpBinding);
  } catch (error) {
    if (isHttpRefusal(error)) throw error;
    logRpcFault(c, error);
    return httpRefusal(error);
  }
}

async function bodyOf(c: RequestContext): Promise<Fields> {
  checkMediaType(c, a2aTypes);
  return await readBody(c, object, 'request');
}

function queryOf(c: RequestContext, { query = {} }: HttpRoute): Fields {
  const given = Object.entries(query).flatMap(([name, type]) => {
    const text = c.req.query(name);
    return text === undefined || text === '' ? [] : [[name, fromText(text, type)] as const];
  });
  return Object.fromEntries(given);
}

// Other texts are refused by the shape of the params.
function fromText(text: string, type: string): unknown {
  if (type === 'integer') return /^\d{1,9}$/.test(text) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return text;
}
