import { extractTrace, inSpan } from '../../core/trace.ts';
import { genAi, mcpNames, operations } from '../../core/trace-names.ts';
import { headerOf } from '../http/connection.ts';
import { RpcError } from '../http/json-rpc.ts';
import type { McpRequest } from './mcp-server.ts';

/** Answers a request within a span of the conventions for MCP, below the span that the client names in `_meta`. */
export function inRequestSpan(
  { c, era, id, method, params, offered }: McpRequest,
  answer: () => Promise<Response>,
): Promise<Response> {
  // Names of spans must not grow with what clients send.
  const tool = method === 'tools/call' && offered().has(String(params.name)) && String(params.name);
  const known = /^(initialize|ping|(server|tools|resources|tasks)\/[a-z/]{1,20})$/.test(method);
  const meta = params._meta as Readonly<Record<string, string>> | null | undefined;
  const attributes = () => ({
    [mcpNames.method]: method.slice(0, 64),
    [mcpNames.requestId]: String(id).slice(0, 64),
    [mcpNames.protocolVersion]: era.version,
    [mcpNames.sessionId]: headerOf(c, 'mcp-session-id'),
    [mcpNames.resourceUri]: typeof params.uri === 'string' ? params.uri.slice(0, 256) : undefined,
    [mcpNames.transport]: 'tcp',
    ...(tool && { [genAi.operation]: operations.executeTool, [genAi.toolName]: tool }),
  });
  const name = `${known ? method : 'request'}${tool ? ` ${tool}` : ''}`;
  const parent = extractTrace(meta ?? {});
  return inSpan(name, { kind: 'server', attributes, parent }, async (span) => {
    try {
      return await answer();
    } catch (error) {
      if (error instanceof RpcError) span.setAttributes({ [mcpNames.statusCode]: `${error.code}` });
      throw error;
    }
  });
}
