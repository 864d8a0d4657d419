import type { Client, Tool as McpTool } from '@modelcontextprotocol/client';
import { invalid, isWaymarkError, messageOf, type WaymarkError } from '../core/error.ts';
import { sha256 } from '../core/json/hash.ts';
import type { JsonObject } from '../core/json/json.ts';
import { untrustedSchema } from '../core/schema/untrusted-schema.ts';
import { type Tool, tool } from '../generate/tool/tool.ts';
import { callTool } from './call-tool.ts';
import { checkAnswer } from './questions.ts';
import type { ToolServer } from './tasks.ts';

/** A tool of a server: its own name, and the tool that agents get. */
export interface ServerTool {
  readonly name: string;
  readonly tool: Tool;
}

/** The tools that a server lists, as tools for agents. One whose schema is not valid is left out and reported. */
export function toTools(
  listed: readonly McpTool[],
  about: ToolNaming & ToolServer,
  report: (error: unknown) => void,
): readonly ServerTool[] {
  const names = nameTools(
    listed.map(({ name }) => name),
    about,
  );
  return listed.flatMap((definition) => {
    const name = names.get(definition.name) ?? definition.name;
    try {
      return [{ name: definition.name, tool: toTool(definition, name, about) }];
    } catch (error) {
      report(badTool(about.server, definition.name, error));
      return [];
    }
  });
}

function toTool(definition: McpTool, name: string, about: ToolNaming & ToolServer): Tool {
  const { description, title, inputSchema } = definition;
  const outputSchema =
    definition.outputSchema && untrustedSchema(definition.outputSchema as JsonObject);
  const made = tool(
    {
      name,
      description: description ?? title ?? definition.name,
      input: untrustedSchema(inputSchema as JsonObject),
      metadata: { mcp: metadataOf(definition, about.server) },
      ...(definition.annotations?.readOnlyHint === true && { effect: 'none' as const }),
    },
    async (input, context) =>
      callTool({ definition, outputSchema, about, input: input as JsonObject }, context),
  ) as Tool;
  return { ...made, checkResumed: checkAnswer };
}

function metadataOf({ name, title, annotations }: McpTool, server: string): JsonObject {
  const { title: shown = title, ...hints } = annotations ?? {};
  return {
    server,
    tool: name,
    ...(shown !== undefined && { title: shown }),
    annotations: JSON.parse(JSON.stringify(hints)),
  };
}

function badTool(server: string, name: string, error: unknown): WaymarkError {
  return invalid(`Tool "${name}" of MCP server "${server}" is left out: ${messageOf(error)}`, {
    cause: isWaymarkError(error) ? error.cause : error,
  });
}

/** All tools of a server, and for how long it says that the list is valid. */
export async function listTools(
  client: Client,
  options: { readonly signal?: AbortSignal; readonly timeout: number },
): Promise<{ readonly tools: readonly McpTool[]; readonly ttlMs: number | undefined }> {
  const result = await client.listTools(undefined, { ...options, cacheMode: 'refresh' });
  const { ttlMs } = result as { readonly ttlMs?: unknown };
  return { tools: result.tools, ttlMs: typeof ttlMs === 'number' ? ttlMs : undefined };
}

export interface ToolNaming {
  readonly server: string;
  readonly prefix: string;
  readonly rename: Readonly<Record<string, string>>;
}

const longest = 64;

/**
 * The names under which a model sees the tools of a server: with a prefix, in the characters that all providers take, and
 * not too long. Two tools with one name are INVALID_ARGUMENT.
 */
function nameTools(
  names: readonly string[],
  { server, prefix, rename }: ToolNaming,
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const named = new Map<string, string>();
  for (const name of names) {
    const given = Object.hasOwn(rename, name) ? rename[name] : undefined;
    const full = given ?? validName(prefix + name);
    const other = owners.get(full);
    if (other !== undefined) {
      throw invalid(
        `Two tools of MCP server "${server}" would be called "${full}": "${other}" and "${name}". Leave one out with \`except\`, or give it another name with \`rename\`.`,
      );
    }
    owners.set(full, name);
    named.set(name, full);
  }
  return named;
}

// Providers take letters, digits, "_" and "-", at most 64. A hash keeps long names apart.
function validName(name: string): string {
  const valid = name.replaceAll(/[^\w-]/g, '_');
  if (valid.length <= longest) return valid;
  return `${valid.slice(0, longest - 9)}_${sha256(name).slice(0, 8)}`;
}
