import * as v from 'valibot';
import { readBody } from '../http/body.ts';
import { jsonResponse } from '../http/json-response.ts';
import { checkMediaType, type Fields, isHttpRefusal, logRpcFault } from '../http/json-rpc.ts';
import type { RequestContext } from '../http/server-context.ts';
import { sseFormat, sseJson } from '../stream/stream-response.ts';
import type { A2aServer } from './a2a-server.ts';
import { errorBody, httpRefusal } from './errors.ts';
import { type HttpRoute, httpRoutes } from './http-routes.ts';
import { a2aTypes, agentOf, checkVersion, perform, streamTask } from './perform.ts';

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
    const request = {
      ...server,
      agent,
      version: '1.0',
      id: null,
      method,
      params,
      c,
      headers: {},
    } as const;
    const performed = await perform(request);
    if ('result' in performed) {
      return jsonResponse(performed.result, { headers: request.headers });
    }
    return await streamTask(request, performed, format, {
      event: (event) => event,
      error: errorBody,
    });
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

const format = sseFormat<Fields>((message) =>
  sseJson(message, 'error' in message ? 'error' : undefined),
);
