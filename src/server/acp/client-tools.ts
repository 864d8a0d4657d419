import type { McpServer } from '@agentclientprotocol/sdk';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import type { CallerTool } from '../../api/turn-values.ts';
import { invalid, messageOf } from '../../core/error.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { runToolOnce } from '../../generate/tool/run-tool-once.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { type McpSource, mcp } from '../../mcp/mcp.ts';

/** The MCP servers that a client passes with a session. The model gets their tools as tools of the caller, which run here. */
export class ClientTools {
  readonly #sources: readonly McpSource[];
  readonly #note: (text: string) => Promise<void>;
  #tools: ReadonlyMap<string, Tool> | undefined;

  constructor(servers: readonly McpServer[], cwd: string, note: (text: string) => Promise<void>) {
    this.#sources = servers.map((server) => sourceOf(server, cwd));
    this.#note = note;
  }

  /** The tools, for a turn. A server that cannot be reached has none; the user reads why. */
  async forTurn(signal: AbortSignal): Promise<readonly CallerTool[]> {
    const tools = new Map<string, Tool>();
    for (const source of this.#sources) {
      const report = (error: unknown): void => void this.#note(messageOf(error));
      try {
        const listed = await source.list({ context: {}, signal, report });
        for (const tool of listed) tools.set(tool.name, tool);
      } catch (error) {
        if (signal.aborted) throw error;
        await this.#note(messageOf(error));
      }
    }
    this.#tools = tools;
    return [...tools.values()].map(({ name, description, definition }) => ({
      name,
      description,
      inputSchema: definition.inputSchema as JsonSchema,
    }));
  }

  /** Calls the tool that a turn waits for. */
  async answer(interrupt: Interrupt, signal: AbortSignal): Promise<InterruptAnswer> {
    // The call may be older than this process.
    if (this.#tools === undefined) await this.forTurn(signal);
    const tool = this.#tools?.get(interrupt.toolName);
    if (tool === undefined) return interrupt.decline('The tool is not available any more.');
    try {
      const ref = interrupt.ref ?? interrupt.toolName;
      const attempt = await runToolOnce(tool, interrupt.input ?? {}, { ref, signal });
      if ('output' in attempt) return interrupt.respond(attempt.output);
      return interrupt.decline(
        'The MCP server asks the user something, which this client cannot show.',
      );
    } catch (error) {
      return interrupt.respond({ error: messageOf(error) });
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#sources.map((source) => source.close()));
  }
}

function sourceOf(server: McpServer, cwd: string): McpSource {
  const name = nameOf(server.name);
  if (!('type' in server)) {
    const env = Object.fromEntries(server.env.map((each) => [each.name, each.value]));
    return mcp(name, { command: server.command, args: server.args, env, cwd });
  }
  if (server.type === 'http') {
    const headers = Object.fromEntries(server.headers.map((each) => [each.name, each.value]));
    return mcp(name, { url: server.url, headers });
  }
  throw invalid(
    `MCP server "${server.name}" uses SSE, which is not supported. Use its address for streamable HTTP, or its command.`,
  );
}

/** A name that tools can be prefixed with. */
function nameOf(given: string): string {
  const name = given.replace(/[^\w-]+/g, '_').slice(0, 32);
  return /^[A-Za-z]/.test(name) ? name : `mcp_${name}`.slice(0, 32);
}
