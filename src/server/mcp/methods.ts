import { checkCall } from '../http/server-context.ts';
import { isLegacyVersion, legacyVersions, modernVersion } from './era.ts';
import type { Fields } from './errors.ts';
import type { McpServer, Method } from './mcp-server.ts';
import { listResources, readResource } from './resources.ts';
import { taskMethods, tasksExtension } from './tasks.ts';
import { describeTool } from './tools.ts';
import { templates } from './uri.ts';

/** What this server offers, in the words of each era. */
function capabilitiesOf({ offered }: McpServer, era: 'modern' | 'legacy'): Fields {
  const runsTasks = [...offered().values()].some(({ metadata }) => metadata.detachable);
  const tasks =
    era === 'modern'
      ? { extensions: { [tasksExtension]: {} } }
      : { tasks: { cancel: {}, requests: { tools: { call: {} } } } };
  return { tools: {}, resources: {}, ...(runsTasks && tasks) };
}

/** All methods but those that may stream. */
export const methods: Readonly<Record<string, Method>> = {
  initialize: {
    only: 'legacy',
    async run(mcp, { params: { protocolVersion } }) {
      const [newest] = legacyVersions;
      return {
        protocolVersion: isLegacyVersion(protocolVersion) ? protocolVersion : newest,
        capabilities: capabilitiesOf(mcp, 'legacy'),
        serverInfo: mcp.info,
        ...instructionsOf(mcp),
      };
    },
  },
  ping: { only: 'legacy', run: async () => ({}) },
  'server/discover': {
    only: 'modern',
    async run(mcp) {
      const supportedVersions = [modernVersion, ...legacyVersions];
      const capabilities = capabilitiesOf(mcp, 'modern');
      return { supportedVersions, capabilities, ...instructionsOf(mcp), ...fresh };
    },
  },
  'tools/list': {
    async run({ serverContext, offered }, { c, era }) {
      const caller = c.get('caller');
      await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
      const tools = [...offered()].map(([name, agent]) => describeTool(name, agent, era));
      return { tools: await Promise.all(tools), ...fresh };
    },
  },
  'resources/list': {
    run: async (mcp, request) => ({ ...(await listResources(mcp, request)), ...fresh }),
  },
  'resources/templates/list': {
    run: async () => ({ resourceTemplates: templates, ...fresh }),
  },
  'resources/read': {
    run: async (mcp, request) => ({ ...(await readResource(mcp, request)), ...fresh }),
  },
  ...taskMethods,
};

/** Modern lists say how long they can be kept: they may differ for each caller, and change with a deployment. */
const fresh = { ttlMs: 0, cacheScope: 'private' } as const;

function instructionsOf({ options: { instructions } }: McpServer): Fields {
  return instructions === undefined ? {} : { instructions };
}
