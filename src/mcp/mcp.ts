import { closest } from '../core/closest.ts';
import { invalid, type WaymarkError } from '../core/error.ts';
import { type Resource, resource } from '../generate/resource.ts';
import type { SkillSource } from '../generate/skill/skill.ts';
import type { Tool } from '../generate/tool/tool.ts';
import type { ToolSource, ToolSourceStatus } from '../generate/tool/tool-source.ts';
import type { Message } from '../protocol/message.ts';
import { checkMcpOptions, type McpServer } from './options.ts';
import { Servers } from './server.ts';
import type { ServerTool } from './tools.ts';

/** The tools of an MCP server, for `tools` of agents, prompts and generate calls, and its skills, for `skills` of agents. */
export interface McpSource extends ToolSource, SkillSource {
  /** Only these of its tools, by the server's own names. */
  only(...tools: readonly string[]): McpSource;
  /** All of its tools except these, by the server's own names. */
  except(...tools: readonly string[]): McpSource;
  /** A resource of the server for `resources` of agents and calls, by its URI or a template: `docs://{page}`. */
  resource(name: string, uri: string): Resource;
  /** The messages of a prompt of the server. */
  prompt(name: string, input?: Readonly<Record<string, string>>): Promise<readonly Message[]>;
  close(): Promise<void>;
  /** The state of its connections: one, or one for each user. */
  status(): readonly ToolSourceStatus[];
}

/**
 * The tools of an MCP server as a tool source. It connects when the app is ready or on first use, and closes with the app.
 *
 * @example
 * const files = mcp('files', { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] });
 * const docs = mcp('docs', { url: 'https://docs.example.com/mcp' });
 * app.defineAgent({ name: 'chat', system: 'Help.', tools: [files, docs.only('search')] });
 */
export function mcp(name: string, options: McpServer): McpSource {
  checkMcpOptions(name, options);
  return sourceOf(new Servers(name, options), { keep: () => true, named: [] });
}

interface Selection {
  keep(tool: string): boolean;
  /** Names that the server must have. */
  readonly named: readonly string[];
}

function sourceOf(servers: Servers, { keep, named }: Selection, base?: McpSource): McpSource {
  let isChecked = named.length === 0;
  const source: McpSource = {
    ...(base && { base }),
    name: servers.name,
    isShared: !servers.isPerUser,
    async list(scope) {
      const all = await servers.of(scope.context)?.list(scope);
      if (all === undefined) return [];
      if (!isChecked) {
        const missing = missingTool(servers, named, all);
        // A tool may go away later; one that was never there is a mistake. Of a user, it may be hidden.
        if (missing && !servers.isPerUser) throw missing;
        if (missing) scope.report(missing);
        isChecked = missing !== undefined || !servers.isPerUser;
      }
      return all.filter((each) => keep(each.name)).map((each): Tool => each.tool);
    },
    listSkills: async (scope) => (await servers.of(scope.context)?.listSkills(scope)) ?? [],
    findSkill: async (skill, { context, signal }) => {
      if (!skill.startsWith(`${servers.name}/`)) return undefined;
      return await servers.of(context)?.findSkill(skill.slice(servers.name.length + 1), signal);
    },
    close: () => servers.close(),
    status: () => servers.status(),
    resource(name, uri) {
      const server = servers.only();
      return resource({ name, uri }, (request) => server.read(request.uri, request.signal));
    },
    prompt: async (name, input = {}) => await servers.only().prompt(name, input),
    only: (...tools) =>
      select({
        keep: (tool) => keep(tool) && tools.includes(tool),
        named: [...named, ...tools],
      }),
    except: (...tools) =>
      select({ keep: (tool) => keep(tool) && !tools.includes(tool), named: [...named, ...tools] }),
  };
  const select = (selection: Selection): McpSource => sourceOf(servers, selection, base ?? source);
  return source;
}

function missingTool(
  { name: server, isPerUser }: Servers,
  named: readonly string[],
  all: readonly ServerTool[],
): WaymarkError | undefined {
  const names = all.map(({ name }) => name);
  const missing = named.find((name) => !names.includes(name));
  if (missing === undefined) return undefined;
  const existing = closest(missing, names).slice(0, 10).join(', ');
  const whom = isPerUser ? ' for a user' : '';
  return invalid(
    `MCP server "${server}" has no tool "${missing}"${whom}. It has ${existing || 'none'}.`,
  );
}
