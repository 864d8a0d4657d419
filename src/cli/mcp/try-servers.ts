import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { invalid, messageOf, WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { type McpServer, mcp } from '../../mcp/index.ts';
import { type CommandCall, jsonOption, type Outcome, option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { UsageError } from '../parse-arguments.ts';
import { splitPair } from '../source/open-agents.ts';
import { oneLine, safe } from '../text/format.ts';
import { callOnce } from './call-once.ts';

/** Options of the subcommands `add`, `list` and `test`. */
export const tryOptions = {
  config: option('file', 'The file for "add", "list" and "test" [mcp.json]'),
  env: option('name=value', 'An environment variable for the command of "add"; can be repeated', {
    multiple: true,
    takes: 'name=value',
    read: (text: string) => splitPair(text, '='),
  }),
  header: option('name:value', 'A header for the URL of "add" and "test"; can be repeated', {
    multiple: true,
    takes: 'name:value',
    read: (text: string) => splitPair(text, ':'),
  }),
  ...jsonOption,
};

type TryCall = CommandCall<typeof tryOptions>;

const defaultFile = 'mcp.json';

/** `waymark mcp add <name> <url>` and `waymark mcp add <name> -- <command> [args]`. */
export async function addServer({ args, options, terminal }: TryCall): Promise<Outcome> {
  const [name, first, ...rest] = args;
  if (name === undefined || first === undefined) {
    throw new UsageError('Give a name, and a URL or a command after "--".');
  }
  const { config = defaultFile, env } = options;
  const entry: ServerEntry = isUrl(first)
    ? urlEntry(first, options)
    : { command: first, args: rest, ...(env && { env: Object.fromEntries(env) }) };
  // Connected first: what does not work is not written.
  const tools = await withTools(name, entry, async (found) => found.length);
  // The rest of the file stays as it is.
  const path = join(terminal.cwd, config);
  const { mcpServers, ...more } = readFile(path);
  const after = { ...more, mcpServers: { ...mcpServers, [name]: entry } };
  writeFileSync(path, `${JSON.stringify(after, null, 2)}\n`);
  // The values of variables and headers may be secret.
  const shown = JSON.stringify({ ...entry, env: undefined, headers: undefined });
  terminal.print(`Added ${name} with ${tools} tools to ${config}.`);
  terminal.print(`In your code: const ${name.replaceAll('-', '_')} = mcp('${name}', ${shown});`);
}

/** `waymark mcp list`: the servers of the file, with their tools. */
export async function listServers({ options, terminal }: TryCall): Promise<Outcome> {
  const { config = defaultFile } = options;
  const { style, cwd } = terminal;
  const servers = Object.entries(readFile(join(cwd, config)).mcpServers);
  if (servers.length === 0) {
    return { json: [], note: 'There are no MCP servers yet. Add one with "waymark mcp add".' };
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
  const lines = states.map(({ name, tools = [], error }) => {
    const about = error === undefined ? safe(tools.join(', ')) : style.warn(oneLine(error, 500));
    return `${safe(name)}  ${about}`;
  });
  const code = states.some(({ error }) => error !== undefined) ? exitCode.unavailable : exitCode.ok;
  return { json: states, text: lines.join('\n'), code };
}

/** `waymark mcp test <name | url> [tool] [input]`: prints the tools of a server, or calls one. */
export async function testServer({ args, options, terminal }: TryCall): Promise<Outcome> {
  const [given, wanted, input] = args;
  const { config = defaultFile } = options;
  const { style, cwd } = terminal;
  if (given === undefined) throw new UsageError('Give the name or the URL of a server.');
  const entry = isUrl(given)
    ? urlEntry(given, options)
    : readFile(join(cwd, config)).mcpServers[given];
  if (entry === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no MCP server "${given}" in ${config}. Add it with "waymark mcp add".`,
    );
  }
  return withTools(isUrl(given) ? 'server' : given, entry, async (tools) => {
    if (wanted === undefined) {
      const lines = tools.map(
        (tool) => `${safe(nameOf(tool))}  ${style.dim(oneLine(tool.description, 100))}`,
      );
      return { json: tools.map(toJson), text: lines.length > 0 ? lines.join('\n') : undefined };
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
    const text = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
    const lines = [
      ...(output === null ? [] : [safe(text)]),
      ...content.map((part) => oneLine(JSON.stringify(part), 200)),
    ];
    return { json: { output, content }, text: lines.length > 0 ? lines.join('\n') : undefined };
  });
}

function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text);
}

function urlEntry(url: string, { header }: TryCall['options']): ServerEntry {
  return { url, ...(header && { headers: Object.fromEntries(header) }) };
}

// The first time that `npx` starts a server, it downloads it. Ctrl+C ends the wait.
const patient = { connectTimeout: 300_000 };

async function withTools<T>(
  name: string,
  entry: ServerEntry,
  fn: (tools: readonly Tool[]) => Promise<T>,
  options: { readonly connectTimeout?: number } = patient,
): Promise<T> {
  const source = mcp(name, { ...options, ...(entry as McpServer) });
  const { signal } = new AbortController();
  try {
    return await fn(await source.list({ context: {}, signal, report: () => {} }));
  } finally {
    await source.close();
  }
}

function parseInput(text = '{}'): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new UsageError('The input of a tool is a JSON object, such as \'{ "path": "a.txt" }\'.');
}

function nameOf({ name, metadata }: Tool): string {
  const about = metadata?.mcp;
  return isJsonObject(about) && typeof about.tool === 'string' ? about.tool : name;
}

function toJson(tool: Tool): object {
  const { name, description, inputSchema } = tool.definition;
  return { tool: nameOf(tool), name, description, inputSchema };
}

const texts = v.record(v.string(), v.string());
const serverEntry = v.union([
  v.object({
    command: v.string(),
    args: v.optional(v.array(v.string())),
    env: v.optional(texts),
    cwd: v.optional(v.string()),
  }),
  v.object({ url: v.string(), headers: v.optional(texts) }),
]);
const file = v.looseObject({ mcpServers: v.optional(v.record(v.string(), serverEntry), {}) });

type ServerEntry = v.InferOutput<typeof serverEntry>;

/** The servers of a file in the form that MCP clients share: `{ "mcpServers": { name: { command, args } } }`. */
function readFile(path: string): v.InferOutput<typeof file> {
  if (!existsSync(path)) return { mcpServers: {} };
  try {
    return v.parse(file, JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    throw invalid(
      `${path} is not a list of MCP servers: ${cause instanceof Error ? cause.message : ''} Write { "mcpServers": { "name": { "command": "…" } } }.`,
      { cause },
    );
  }
}
