import { jsonResponse, short } from '../http/answer.ts';
import type { McpServerOptions } from '../http/handler-options.ts';
import {
  answerFailure,
  checkMediaType,
  type Fields,
  RpcError,
  readMessage,
  resultMessage,
} from '../http/json-rpc.ts';
import { authorize, type RequestContext, type ServerContext } from '../http/server-context.ts';
import { answerToolCall } from './call-tool.ts';
import { eraOf, isLegacyVersion, legacyVersions, modernVersion } from './era.ts';
import {
  createMcpServer,
  inEra,
  type McpRequest,
  type McpServer,
  type Method,
  newLegacySession,
  peerOf,
} from './mcp-server.ts';
import {
  codes,
  fromErrorBody,
  type Incoming,
  idOf,
  parseIncoming,
  type RpcRequest,
} from './messages.ts';
import { listResources, readResource } from './resources.ts';
import {
  getSkill,
  hasSkills,
  listSkillResources,
  listSkills,
  readSkillResource,
  skillsExtension,
} from './skills.ts';
import { answerTaskResult, taskMethods, tasksExtension } from './tasks.ts';
import { describeTool } from './tools.ts';
import { inRequestSpan } from './trace.ts';
import { templates } from './uri.ts';

/** Answers a POST of a client: one JSON-RPC message. */
export type Endpoint = (c: RequestContext) => Promise<Response>;

export function createEndpoint(serverContext: ServerContext, options: McpServerOptions): Endpoint {
  const mcp = createMcpServer(serverContext, options);
  return async (c) => {
    let body: unknown;
    try {
      checkMediaType(c);
      body = await readMessage(c, 'message');
      return await answer(mcp, c, parseIncoming(body));
    } catch (error) {
      return answerFailure(c, error, { id: idOf(body), convert: fromErrorBody });
    }
  };
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
  const request: McpRequest = { ...mcp, era, id, method, params, c };
  return await inRequestSpan(request, () => answerKnown(request));
}

async function answerKnown(request: McpRequest): Promise<Response> {
  const { id, method, era } = request;
  if (method === 'tools/call') return await answerToolCall(request);
  if (method === 'tasks/result' && era.kind === 'legacy') {
    return await answerTaskResult(request);
  }
  const handle = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!handle || (handle.only !== undefined && handle.only !== era.kind)) {
    const httpStatus = era.kind === 'modern' ? 404 : 200;
    const message = `There is no method ${short(method)}.`;
    throw new RpcError(codes.methodNotFound, message, { httpStatus });
  }
  const result = await handle.run(request);
  return jsonResponse(resultMessage(id, inEra(request, result)), {
    headers: sessionHeader(request),
  });
}

function sessionHeader({ c, method, params }: McpRequest): Readonly<Record<string, string>> {
  if (method !== 'initialize') return {};
  const { capabilities } = params;
  const declared = typeof capabilities === 'object' && capabilities !== null ? capabilities : {};
  return { 'mcp-session-id': newLegacySession(c, declared as Fields) };
}

function accepted(): Response {
  return new Response(null, { status: 202 });
}

/** The capabilities of this server, in the words of each era. */
function capabilitiesOf(mcp: McpServer, era: 'modern' | 'legacy'): Fields {
  const runsTasks = [...mcp.offered().values()].some(({ metadata }) => metadata.detachable);
  const isModern = era === 'modern';
  const extensions = {
    ...(runsTasks && isModern && { [tasksExtension]: {} }),
    ...(hasSkills(mcp) && { [skillsExtension]: {} }),
  };
  return {
    tools: {},
    resources: {},
    ...(runsTasks && !isModern && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

/** All methods but those that may stream. */
export const methods: Readonly<Record<string, Method>> = {
  initialize: {
    only: 'legacy',
    async run(request) {
      const { info, options, params } = request;
      const { protocolVersion } = params;
      const [newest] = legacyVersions;
      return {
        protocolVersion: isLegacyVersion(protocolVersion) ? protocolVersion : newest,
        capabilities: capabilitiesOf(request, 'legacy'),
        serverInfo: info,
        instructions: options.instructions,
      };
    },
  },
  ping: { only: 'legacy', run: async () => ({}) },
  'server/discover': {
    only: 'modern',
    async run(request) {
      const supportedVersions = [modernVersion, ...legacyVersions];
      const capabilities = capabilitiesOf(request, 'modern');
      const { instructions } = request.options;
      return { supportedVersions, capabilities, instructions, ...fresh };
    },
  },
  'tools/list': {
    async run({ offered, c, era }) {
      await authorize(c, { operation: 'listAgents' });
      const tools = [...offered()].map(([name, agent]) => describeTool(name, agent, era));
      return { tools: await Promise.all(tools), ...fresh };
    },
  },
  'resources/list': {
    async run(request) {
      const { resources, ...page } = await listResources(request);
      const isFirst = request.params.cursor === undefined;
      const skills = isFirst ? await listSkillResources(request) : [];
      return { resources: [...skills, ...(resources as readonly Fields[])], ...page, ...fresh };
    },
  },
  'resources/templates/list': {
    run: async () => ({ resourceTemplates: templates, ...fresh }),
  },
  'resources/read': {
    async run(request) {
      const skill = await readSkillResource(request, String(request.params.uri));
      return { ...(skill ?? (await readResource(request))), ...fresh };
    },
  },
  'skills/list': {
    run: async (request) => ({ ...(await listSkills(request)), ...fresh }),
  },
  'skills/get': {
    run: async (request) => ({ ...(await getSkill(request)), ...fresh }),
  },
  ...taskMethods,
};

/** Modern lists say how long they can be kept: they may differ for each caller, and change with a deployment. */
const fresh = { ttlMs: 0, cacheScope: 'private' } as const;
