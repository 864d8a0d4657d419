import type { CallToolResult, JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import * as v from 'valibot';
import { WaymarkError } from '../core/error.ts';

const mostNotifications = 2_000;

/**
 * Ends the connection of a server that sends more notifications than a client can read. What it sends after that is
 * dropped unread. Call it on a connected transport.
 */
export function limitNotifications(transport: Transport, end: (reason: string) => void): void {
  const receive = transport.onmessage;
  let since = performance.now();
  let count = 0;
  let isEnded = false;
  transport.onmessage = (message, extra) => {
    if (isEnded) return;
    if ('method' in message && !('id' in message)) {
      const now = performance.now();
      if (now - since > 1_000) {
        since = now;
        count = 0;
      }
      count += 1;
      if (count > mostNotifications) {
        isEnded = true;
        end(`sent more than ${mostNotifications} notifications in a second`);
        return;
      }
    }
    receive?.(message, extra);
  };
}

/** The most tools of one server, and how long they may be as JSON, all together. */
const toolLimits = { count: 1_000, length: 2_097_152 } as const;

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
    if (count <= toolLimits.count) length += lengthOf(tool);
    if (count <= toolLimits.count && length <= toolLimits.length) return true;
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
            `MCP server "${server}" lists more tools than ${toolLimits.count}, or more than ${toolLimits.length} characters of them. "${firstLeft}" and those after it are left out.`,
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

/** The extension of 2026-07-28 that a client declares to get tasks. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

const taskKey = 'waymark/task';
const taskId = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));
const modernTask = v.object({ resultType: v.literal('task'), taskId });
const legacyTask = v.object({ task: v.object({ taskId }) });

/** Lets through results that are tasks, which the client package refuses. Call it on a connected transport. */
export function admitTasks(transport: Transport): void {
  const receive = transport.onmessage;
  transport.onmessage = (message, extra) => receive?.(admitted(message), extra);
}

function admitted<Message extends JSONRPCMessage>(message: Message): Message {
  if (!('result' in message)) return message;
  const id = startedTask(message.result);
  if (id === undefined) return message;
  const result = { resultType: 'complete', content: [], _meta: { [taskKey]: id } };
  return { ...message, result };
}

function startedTask(result: unknown): string | undefined {
  if (v.is(modernTask, result)) return result.taskId;
  return v.is(legacyTask, result) ? result.task.taskId : undefined;
}

/** The id of the task that a server started for a call; `undefined` if it has answered. */
export function taskOf(result: { readonly _meta?: CallToolResult['_meta'] }): string | undefined {
  const id = result._meta?.[taskKey];
  return typeof id === 'string' ? id : undefined;
}
