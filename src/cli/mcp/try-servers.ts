import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { messageOf, WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { type McpServer, mcp } from '../../mcp/index.ts';
import { exitCode } from '../exit-code.ts';
import { usageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, safe } from '../text/format.ts';
import { callOnce } from './call-once.ts';

/** Arguments of the subcommands `add`, `list` and `test`. */
export interface TryOptions {
  readonly args: readonly string[];
  readonly config: string | undefined;
  readonly env: readonly string[] | undefined;
  readonly header: readonly string[] | undefined;
  readonly json: boolean | undefined;
  readonly terminal: Terminal;
}

const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** `waymark mcp add <name> <url>` and `waymark mcp add <name> -- <command> [args]`. */
export async function addServer(options: TryOptions): Promise<number> {
  const { args, terminal } = options;
  const [name, first, ...rest] = args;
  if (name === undefined || first === undefined) {
    throw usageError('Give a name, and a URL or a command after "--".', 'mcp');
  }
  const entry = entryOf(first, rest, options);
  // Connected first: what does not work is not written.
  const tools = await withTools(name, entry, async (found) => found.length);
  writeServer(fileOf(options), name, entry);
  const shown = JSON.stringify('url' in entry ? { url: entry.url } : withoutEnv(entry));
  terminal.print(`Added ${name} with ${tools} tools to ${options.config ?? defaultFile}.`);
  terminal.print(`In your code: const ${name.replaceAll('-', '_')} = mcp('${name}', ${shown});`);
  return exitCode.ok;
}

/** `waymark mcp list`: the servers of the file, with their tools. */
export async function listServers(options: TryOptions): Promise<number> {
  const { terminal, json } = options;
  const servers = Object.entries(readServers(fileOf(options)));
  if (servers.length === 0 && !json) {
    terminal.note('There are no MCP servers yet. Add one with "waymark mcp add".');
  }
  const states = await Promise.all(
    servers.map(async ([name, entry]) => {
      try {
        // With the usual time limit: a server that does not answer delays the whole list.
        const names = async (tools: readonly Tool[]) => tools.map(nameOf);
        return { name, tools: await withTools(name, entry, names, {}) };
      } catch (error) {
        return { name, error: messageOf(error) };
      }
    }),
  );
  if (json) terminal.print(JSON.stringify(states, null, 2));
  else for (const state of states) printState(state, terminal);
  return states.some(({ error }) => error !== undefined) ? exitCode.unavailable : exitCode.ok;
}

/** `waymark mcp test <name | url> [tool] [input]`: prints the tools of a server, or calls one. */
export async function testServer(options: TryOptions): Promise<number> {
  const { args, terminal, json } = options;
  const [given, wanted, input] = args;
  if (given === undefined) throw usageError('Give the name or the URL of a server.', 'mcp');
  const entry = isUrl(given) ? entryOf(given, [], options) : readServers(fileOf(options))[given];
  if (entry === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no MCP server "${given}" in ${options.config ?? defaultFile}. Add it with "waymark mcp add".`,
    );
  }
  return withTools(isUrl(given) ? 'server' : given, entry, async (tools) => {
    if (wanted === undefined) {
      if (json) terminal.print(JSON.stringify(tools.map(toJson), null, 2));
      else for (const tool of tools) printTool(tool, terminal);
      return exitCode.ok;
    }
    const tool = tools.find((each) => nameOf(each) === wanted);
    if (!tool) {
      const names = tools.map(nameOf).join(', ');
      throw new WaymarkError(
        'NOT_FOUND',
        `There is no tool "${wanted}". Available tools: ${names}.`,
      );
    }
    const { output, content } = await callOnce(tool, parseInput(input), terminal);
    if (json) terminal.print(JSON.stringify({ output, content }, null, 2));
    else {
      const text = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
      if (output !== null) terminal.print(safe(text));
      for (const part of content) terminal.print(oneLine(JSON.stringify(part), 200));
    }
    return exitCode.ok;
  });
}

const defaultFile = 'mcp.json';

function fileOf({ config = defaultFile, terminal }: TryOptions): string {
  return join(terminal.cwd, config);
}

function entryOf(
  first: string,
  rest: readonly string[],
  { env = [], header = [] }: TryOptions,
): ServerEntry {
  if (isUrl(first)) {
    const headers = pairs(header, ':');
    return { url: first, ...(header.length > 0 && { headers }) };
  }
  return { command: first, args: [...rest], ...(env.length > 0 && { env: pairs(env, '=') }) };
}

function withoutEnv({ env: _, ...entry }: Extract<ServerEntry, { command: string }>): object {
  return entry;
}

function pairs(texts: readonly string[], separator: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf(separator);
      if (at < 1) throw usageError(`"${text}" is not name${separator}value.`, 'mcp');
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
}

// The first time that `npx` starts a server, it downloads it. Ctrl+C ends the wait.
const patient = { connectTimeout: 300_000 };

async function withTools<T>(
  name: string,
  entry: ServerEntry,
  fn: (tools: readonly Tool[]) => Promise<T>,
  options: { readonly connectTimeout?: number } = patient,
): Promise<T> {
  const source = mcp(name, { ...options, ...toServer(entry) });
  const { signal } = new AbortController();
  const problems: unknown[] = [];
  try {
    return await fn(
      await source.list({ context: {}, signal, report: (error) => problems.push(error) }),
    );
  } finally {
    await source.close();
  }
}

function parseInput(text: string | undefined): JsonObject {
  try {
    const value = JSON.parse(text ?? '{}') as Json;
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw usageError('The input of a tool is a JSON object, such as \'{ "path": "a.txt" }\'.', 'mcp');
}

function nameOf({ name, metadata }: Tool): string {
  const about = metadata?.mcp;
  return isJsonObject(about) && typeof about.tool === 'string' ? about.tool : name;
}

function toJson(tool: Tool): object {
  const { name, description, inputSchema } = tool.definition;
  return { tool: nameOf(tool), name, description, inputSchema };
}

function printTool(tool: Tool, { print, style }: Terminal): void {
  print(`${safe(nameOf(tool))}  ${style.dim(oneLine(tool.description, 100))}`);
}

function printState(
  {
    name,
    tools,
    error,
  }: {
    readonly name: string;
    readonly tools?: readonly string[];
    readonly error?: string;
  },
  { print, style }: Terminal,
): void {
  if (error !== undefined) print(`${safe(name)}  ${style.warn(oneLine(error, 500))}`);
  else print(`${safe(name)}  ${safe((tools ?? []).join(', '))}`);
}

const texts = v.record(v.string(), v.string());
const entry = v.union([
  v.object({
    command: v.string(),
    args: v.optional(v.array(v.string())),
    env: v.optional(texts),
    cwd: v.optional(v.string()),
  }),
  v.object({ url: v.string(), headers: v.optional(texts) }),
]);
const file = v.looseObject({ mcpServers: v.optional(v.record(v.string(), entry), {}) });

/** A server as it is written in a file. */
export type ServerEntry = v.InferOutput<typeof entry>;

/** The servers of a file in the form that MCP clients share: `{ "mcpServers": { name: { command, args } } }`. */
function readServers(path: string): Readonly<Record<string, ServerEntry>> {
  return existsSync(path) ? read(path).mcpServers : {};
}

/** Adds a server to the file, or replaces the one with its name. The rest of the file stays as it is. */
function writeServer(path: string, name: string, server: ServerEntry): void {
  const before = existsSync(path) ? read(path) : { mcpServers: {} };
  const after = { ...before, mcpServers: { ...before.mcpServers, [name]: server } };
  writeFileSync(path, `${JSON.stringify(after, null, 2)}\n`);
}

/** An entry as `mcp()` takes it. */
function toServer(given: ServerEntry): McpServer {
  const defined = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as unknown as McpServer;
}

function read(path: string): v.InferOutput<typeof file> {
  try {
    return v.parse(file, JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `${path} is not a list of MCP servers: ${cause instanceof Error ? cause.message : ''} Write { "mcpServers": { "name": { "command": "…" } } }.`,
      { cause },
    );
  }
}
