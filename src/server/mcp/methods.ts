import { checkCall } from '../http/server-context.ts';
import { isLegacyVersion, legacyVersions, modernVersion } from './era.ts';
import type { Fields } from './errors.ts';
import type { McpRequest, McpServer } from './mcp-server.ts';
import { describeTool } from './tools.ts';

/** A method that is answered by one result. */
export interface Method {
  /** The era that has it; absent: both. */
  readonly only?: 'modern' | 'legacy';
  run(mcp: McpServer, request: McpRequest): Promise<Fields>;
}

const capabilities = { tools: {} };

/** All methods but `tools/call`, which may stream. */
export const methods: Readonly<Record<string, Method>> = {
  initialize: {
    only: 'legacy',
    async run({ info, options }, { params: { protocolVersion } }) {
      const [newest] = legacyVersions;
      return {
        protocolVersion: isLegacyVersion(protocolVersion) ? protocolVersion : newest,
        capabilities,
        serverInfo: info,
        ...instructionsOf(options),
      };
    },
  },
  ping: { only: 'legacy', run: async () => ({}) },
  'server/discover': {
    only: 'modern',
    async run({ options }) {
      const supportedVersions = [modernVersion, ...legacyVersions];
      return { supportedVersions, capabilities, ...instructionsOf(options), ...fresh };
    },
  },
  'tools/list': {
    async run({ serverContext, offered }, { c }) {
      const caller = c.get('caller');
      await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
      const tools = [...offered()].map(([name, agent]) => describeTool(name, agent));
      return { tools: await Promise.all(tools), ...fresh };
    },
  },
};

/** Modern lists say how long they can be kept: they may differ for each caller, and change with a deployment. */
const fresh = { ttlMs: 0, cacheScope: 'private' } as const;

function instructionsOf({ instructions }: McpServer['options']): Fields {
  return instructions === undefined ? {} : { instructions };
}
