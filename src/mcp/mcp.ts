import { closest } from '../core/closest.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import { systemClock } from '../core/time/clock.ts';
import { type Resource, resource } from '../generate/resource.ts';
import type { Tool } from '../generate/tool.ts';
import type { ToolSource, ToolSourceScope } from '../generate/tool-source.ts';
import type { Message, Part } from '../protocol/message.ts';
import { McpConnection } from './connection.ts';
import { readContent, toMessages } from './content.ts';
import { toMcpError } from './errors.ts';
import { checkMcpOptions, type McpServer } from './options.ts';
import { listTools, type ServerTool, toTools } from './tools.ts';

/** The tools of an MCP server, for `tools` of agents, prompts and generate calls. */
export interface McpSource extends ToolSource {
  /** Only these of its tools, by the server's own names. */
  only(...tools: readonly string[]): McpSource;
  /** All of its tools except these, by the server's own names. */
  except(...tools: readonly string[]): McpSource;
  /** A resource of the server for `resources` of agents and calls, by its URI or a template: `docs://{page}`. */
  resource(name: string, uri: string): Resource;
  /** The messages of a prompt of the server. */
  prompt(name: string, input?: Readonly<Record<string, string>>): Promise<readonly Message[]>;
  close(): Promise<void>;
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
  const server = new Server(name, options);
  return sourceOf(server, { keep: () => true, named: [] });
}

interface Selection {
  keep(tool: string): boolean;
  /** Names that the server must have. */
  readonly named: readonly string[];
}

function sourceOf(server: Server, { keep, named }: Selection): McpSource {
  let isChecked = false;
  return {
    name: server.name,
    async list(scope) {
      const all = await server.list(scope);
      // A tool may go away later; one that was never there is a mistake.
      if (!isChecked) checkNames(server.name, named, all);
      isChecked = true;
      return all.filter((each) => keep(each.name)).map((each): Tool => each.tool);
    },
    close: () => server.close(),
    resource: (name, uri) =>
      resource({ name, uri }, (request) => server.read(request.uri, request.signal)),
    prompt: (name, input = {}) => server.prompt(name, input),
    only: (...tools) =>
      sourceOf(server, {
        keep: (tool) => keep(tool) && tools.includes(tool),
        named: [...named, ...tools],
      }),
    except: (...tools) =>
      sourceOf(server, { keep: (tool) => keep(tool) && !tools.includes(tool), named }),
  };
}

function checkNames(server: string, named: readonly string[], all: readonly ServerTool[]): void {
  const names = all.map(({ name }) => name);
  const missing = named.find((name) => !names.includes(name));
  if (missing === undefined) return;
  const existing = closest(missing, names).slice(0, 10).join(', ');
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `MCP server "${server}" has no tool "${missing}". It has ${existing || 'none'}.`,
  );
}

const defaultTtlMs = 300_000;
const longestTtlMs = 86_400_000;

/** One server: its connection, and its tools as they were last listed. */
class Server {
  readonly name: string;
  readonly #options: McpServer;
  readonly #connection: McpConnection;
  #known: readonly ServerTool[] | undefined;
  #validUntil = 0;
  #listing: Promise<readonly ServerTool[]> | undefined;
  // Counts announced changes, so that a list read before one is not taken for a current one.
  #changes = 0;

  constructor(name: string, options: McpServer) {
    this.name = name;
    this.#options = options;
    this.#connection = new McpConnection(name, options, () => this.#outdate());
  }

  async list(scope: ToolSourceScope): Promise<readonly ServerTool[]> {
    if (this.#known && this.#now() < this.#validUntil) return this.#known;
    try {
      this.#listing ??= this.#read(scope.report).finally(() => {
        this.#listing = undefined;
      });
      return await this.#listing;
    } catch (error) {
      // With the last known list, the model gets a clear error from the tool that it calls.
      if (!this.#known || isMistake(error)) throw error;
      scope.report(error);
      return this.#known;
    }
  }

  /** The content of a resource. */
  async read(uri: string, signal: AbortSignal): Promise<Part[]> {
    const open = await this.#connection.client(signal);
    const { timeout = 60_000 } = this.#options;
    try {
      return [...(await readContent(open.client, uri, { signal, timeout }))];
    } catch (error) {
      const doing = `the resource "${uri}"`;
      throw toMcpError(open.endedBy() ?? error, { server: this.name, doing, signal });
    }
  }

  /** The messages of a prompt. */
  async prompt(name: string, input: Readonly<Record<string, string>>): Promise<readonly Message[]> {
    const open = await this.#connection.client();
    const { timeout = 60_000 } = this.#options;
    try {
      const params = { name, arguments: { ...input } };
      return toMessages((await open.client.getPrompt(params, { timeout })).messages);
    } catch (error) {
      const doing = `the prompt "${name}"`;
      throw toMcpError(open.endedBy() ?? error, { server: this.name, doing });
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
    this.#outdate();
  }

  async #read(report: ToolSourceScope['report']): Promise<readonly ServerTool[]> {
    const { prefix = `${this.name}_`, rename = {}, timeout = 60_000 } = this.#options;
    const changes = this.#changes;
    const open = await this.#connection.client();
    const { tools, ttlMs = this.#options.ttl ?? defaultTtlMs } = await listTools(open.client, {
      timeout,
    }).catch((error: unknown) => {
      throw toMcpError(open.endedBy() ?? error, {
        server: this.name,
        doing: 'the list of its tools',
      });
    });
    const about = {
      server: this.name,
      prefix,
      rename,
      timeout,
      connection: this.#connection,
      onUnknownTool: () => this.#outdate(),
    };
    this.#known = toTools(tools, about, report);
    const isCurrent = changes === this.#changes;
    this.#validUntil = isCurrent ? this.#now() + Math.min(Math.max(ttlMs, 0), longestTtlMs) : 0;
    return this.#known;
  }

  #outdate(): void {
    this.#changes += 1;
    this.#validUntil = 0;
  }

  #now(): number {
    return (this.#options.clock ?? systemClock).now();
  }
}

function isMistake(error: unknown): boolean {
  return isWaymarkError(error) && error.status === 'INVALID_ARGUMENT';
}
