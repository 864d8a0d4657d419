import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import type { McpServer } from '../../mcp/index.ts';

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
export function readServers(path: string): Readonly<Record<string, ServerEntry>> {
  return existsSync(path) ? read(path).mcpServers : {};
}

/** Adds a server to the file, or replaces the one with its name. The rest of the file stays as it is. */
export function writeServer(path: string, name: string, server: ServerEntry): void {
  const before = existsSync(path) ? read(path) : { mcpServers: {} };
  const after = { ...before, mcpServers: { ...before.mcpServers, [name]: server } };
  writeFileSync(path, `${JSON.stringify(after, null, 2)}\n`);
}

/** An entry as `mcp()` takes it. */
export function toServer(given: ServerEntry): McpServer {
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
