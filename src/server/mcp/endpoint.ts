import * as v from 'valibot';
import { isWaymarkError } from '../../core/error.ts';
import { readBody } from '../http/body.ts';
import { headerOf } from '../http/connection.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import { logFault } from '../http/log.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
import { answerToolCall } from './call-tool.ts';
import { eraOf } from './era.ts';
import { codes, errorMessage, type Fields, isHttpRefusal, McpError, toMcpError } from './errors.ts';
import { type Incoming, idOf, parseIncoming, type RpcRequest, resultMessage } from './json-rpc.ts';
import { newLegacySession, peerOf } from './legacy-session.ts';
import { createMcpServer, inEra, type McpRequest, type McpServer } from './mcp-server.ts';
import { methods } from './methods.ts';
import { answerTaskResult } from './task-result.ts';

/** Answers a POST of a client: one JSON-RPC message. */
export type Endpoint = (c: RequestContext) => Promise<Response>;

export function createEndpoint(serverContext: ServerContext, options: McpServerOptions): Endpoint {
  const mcp = createMcpServer(serverContext, options);
  return async (c) => {
    let body: unknown;
    try {
      body = await readMessage(serverContext, c);
      return await answer(mcp, c, parseIncoming(body));
    } catch (error) {
      if (isHttpRefusal(error)) throw error;
      if (!(error instanceof McpError)) logFault(serverContext, error, c.get('logged'));
      const shown = toMcpError(error);
      return jsonResponse(errorMessage(idOf(body), shown), { status: shown.httpStatus });
    }
  };
}

async function readMessage(serverContext: ServerContext, c: RequestContext): Promise<unknown> {
  const type = headerOf(c, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') {
    const message = 'Expected the content type application/json.';
    throw new McpError(codes.invalidRequest, message, { httpStatus: 415 });
  }
  try {
    return await readBody(c, v.unknown(), { what: 'message', ...serverContext });
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'INVALID_ARGUMENT') throw error;
    throw new McpError(codes.parseError, error.message, { httpStatus: 400 });
  }
}

async function answer(mcp: McpServer, c: RequestContext, incoming: Incoming): Promise<Response> {
  switch (incoming.type) {
    case 'reply':
      mcp.dialogs.answer(peerOf(c), incoming.message);
      return accepted();
    case 'notification': {
      const { method, params } = incoming.message;
      if (method === 'notifications/cancelled') mcp.dialogs.cancel(peerOf(c), params.requestId);
      return accepted();
    }
    case 'request':
      return await answerRequest(mcp, c, incoming.message);
  }
}

async function answerRequest(
  mcp: McpServer,
  c: RequestContext,
  { id, method, params }: RpcRequest,
): Promise<Response> {
  Object.assign(c.get('logged'), { rpc: method.slice(0, 64) });
  const era = eraOf(c, { jsonrpc: '2.0', id, method, params });
  if (era.kind === 'legacy' && method !== 'initialize') peerOf(c);
  const request: McpRequest = { era, id, method, params, c };
  if (method === 'tools/call') return await answerToolCall(mcp, request);
  if (method === 'tasks/result' && era.kind === 'legacy') {
    return await answerTaskResult(mcp, request);
  }
  const handle = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!handle || (handle.only !== undefined && handle.only !== era.kind)) {
    throw new McpError(
      codes.methodNotFound,
      `There is no method ${JSON.stringify(method.slice(0, 64))}.`,
      {
        httpStatus: era.kind === 'modern' ? 404 : 200,
      },
    );
  }
  const result = await handle.run(mcp, request);
  return jsonResponse(resultMessage(id, inEra(mcp, era, result)), {
    headers: sessionHeader(mcp, request),
  });
}

function sessionHeader(
  { serverContext }: McpServer,
  { method, params }: McpRequest,
): Readonly<Record<string, string>> {
  if (method !== 'initialize') return {};
  const { capabilities } = params;
  const declared = typeof capabilities === 'object' && capabilities !== null ? capabilities : {};
  return { 'mcp-session-id': newLegacySession(serverContext, declared as Fields) };
}

function accepted(): Response {
  return new Response(null, { status: 202 });
}
