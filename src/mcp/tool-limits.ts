import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { WaymarkError } from '../core/error.ts';

/** The most tools of one server, and how long they may be as JSON, all together. */
const limits = { count: 1_000, length: 2_097_152 } as const;

/** Cuts the list of a server's tools where it gets too long for a model and for memory. */
export interface ToolLimit {
  /** Reads a list; the error tells which of its tools are left out. */
  during<T>(read: () => Promise<T>, report: (error: WaymarkError) => void): Promise<T>;
}

/** Limits the lists that come over a connected transport: pages after the limit are not asked for. */
export function limitTools(transport: Transport, server: string): ToolLimit {
  const receive = transport.onmessage;
  let count = 0;
  let length = 0;
  let firstLeft: string | undefined;

  const fits = (tool: unknown): boolean => {
    count += 1;
    if (count <= limits.count) length += lengthOf(tool);
    if (count <= limits.count && length <= limits.length) return true;
    firstLeft ??= String((tool as { readonly name?: unknown } | null)?.name).slice(0, 100);
    return false;
  };
  const cut = <Message extends JSONRPCMessage>(message: Message): Message => {
    if (!('result' in message)) return message;
    const { tools } = message.result as { readonly tools?: unknown };
    if (!Array.isArray(tools)) return message;
    const end = tools.findIndex((tool) => !fits(tool));
    if (end < 0) return message;
    const { nextCursor: _, ...result } = message.result as Record<string, unknown>;
    return { ...message, result: { ...result, tools: tools.slice(0, end) } };
  };
  transport.onmessage = (message, extra) => receive?.(cut(message), extra);

  return {
    async during(read, report) {
      count = 0;
      length = 0;
      firstLeft = undefined;
      const result = await read();
      if (firstLeft !== undefined) {
        report(
          new WaymarkError(
            'RESOURCE_EXHAUSTED',
            `MCP server "${server}" lists more tools than ${limits.count}, or more than ${limits.length} characters of them. "${firstLeft}" and those after it are left out.`,
          ),
        );
      }
      return result;
    },
  };
}

function lengthOf(tool: unknown): number {
  try {
    return JSON.stringify(tool).length;
  } catch {
    // Nested so deeply that there is no stack left.
    return Number.POSITIVE_INFINITY;
  }
}
