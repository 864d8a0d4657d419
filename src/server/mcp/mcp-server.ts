import type { Agent } from '../../agent/spec/agent.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import { findAgent, type RequestContext, type ServerContext } from '../http/server-context.ts';
import { createDialogs, type Dialogs } from './dialogs.ts';
import { type Era, serverInfoKey } from './era.ts';
import type { Fields, RequestId } from './errors.ts';
import { offeredAgents } from './offered-agents.ts';
import { createRequestStates, type RequestStates } from './request-state.ts';

/** What all requests of the MCP endpoint share. */
export interface McpServer {
  readonly serverContext: ServerContext;
  readonly options: McpServerOptions;
  readonly info: Fields;
  readonly states: RequestStates;
  readonly dialogs: Dialogs;
  /** The agents by the name of their tool. */
  offered(): ReadonlyMap<string, Agent>;
  /** An offered agent by its own name, or `NOT_FOUND`. */
  agent(name: string): Agent;
}

export function createMcpServer(
  serverContext: ServerContext,
  options: McpServerOptions,
): McpServer {
  const { app, clock } = serverContext;
  const offered = (): ReadonlyMap<string, Agent> => offeredAgents(app, options);
  return {
    serverContext,
    options,
    info: { name: options.name ?? 'waymark', version: options.version ?? '1' },
    states: createRequestStates(options, clock),
    dialogs: createDialogs(clock),
    offered,
    agent: (name) => findAgent({ agents: () => [...offered().values()] }, name),
  };
}

/** One request of a client. */
export interface McpRequest {
  readonly era: Era;
  readonly id: RequestId;
  readonly method: string;
  readonly params: Fields;
  /** The HTTP request that it came in. */
  readonly c: RequestContext;
}

/** A method that is answered by one result. */
export interface Method {
  /** The era that has it; absent: both. */
  readonly only?: 'modern' | 'legacy';
  run(mcp: McpServer, request: McpRequest): Promise<Fields>;
}

/** The token under which the caller wants to hear of progress. */
export function progressTokenOf({ params }: McpRequest): RequestId | undefined {
  const meta = params._meta as { readonly progressToken?: unknown } | null | undefined;
  const token = meta?.progressToken;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** A result with the fields that its era asks for. */
export function inEra({ info }: McpServer, { kind }: Era, result: Fields): Fields {
  if (kind === 'legacy') return result;
  const meta = result._meta as Fields | undefined;
  return { resultType: 'complete', ...result, _meta: { ...meta, [serverInfoKey]: info } };
}
