import type { CallToolResult, Tool as McpTool, Progress } from '@modelcontextprotocol/client';

import type { Json, JsonObject } from '../core/json/json.ts';
import type { ToolContext } from '../generate/tool.ts';
import type { McpConnection } from './connection.ts';
import { toMcpError } from './errors.ts';
import { fromToolResult } from './tool-result.ts';

/** What calling the tools of a server needs. */
export interface ToolServer {
  readonly server: string;
  readonly connection: McpConnection;
  readonly timeoutMs: number;
  /** Called when the server does not know a tool that it has listed. */
  onUnknownTool(): void;
}

/** One call of a tool of a server. */
export interface ServerToolCall {
  readonly definition: McpTool;
  readonly about: ToolServer;
  readonly input: JsonObject;
}

// However much progress a server reports.
const longestCallMs = 30 * 60_000;
const progressEveryMs = 100;

/** Calls a tool of a server, with progress as the tool's stream. */
export async function callTool(call: ServerToolCall, context: ToolContext): Promise<Json> {
  const { definition, about, input } = call;
  const { connection, timeoutMs, server } = about;
  const { name } = definition;
  const { signal } = context;
  const failed = { server, doing: `the call of "${name}"`, signal };
  const open = await connection.client(signal);
  let result: CallToolResult;
  try {
    result = await open.client.callTool(
      { name, arguments: input },
      {
        signal,
        timeout: timeoutMs,
        resetTimeoutOnProgress: true,
        maxTotalTimeout: longestCallMs,
        onprogress: progressOf(context),
        toolDefinition: definition,
      },
    );
  } catch (error) {
    if (isUnknownTool(error)) about.onUnknownTool();
    throw toMcpError(open.endedBy ?? error, failed);
  }
  const { output, content } = fromToolResult(result, name);
  context.attach(...content);
  return output;
}

/** Shows progress to readers, but not more often than they can read it. */
function progressOf(context: ToolContext): (progress: Progress) => void {
  let last = Number.NEGATIVE_INFINITY;
  return ({ progress, total, message }) => {
    const now = performance.now();
    if (now - last < progressEveryMs && progress !== total) return;
    last = now;
    void context.stream({
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    });
  };
}

function isUnknownTool(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    (error.code === -32602 || error.code === -32601)
  );
}
