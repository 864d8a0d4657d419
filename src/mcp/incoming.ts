import type {
  CallToolResult,
  JSONRPCResultResponse,
  Transport,
} from '@modelcontextprotocol/client';
import * as v from 'valibot';
import { WaymarkError } from '../core/error.ts';

/** The most notifications of a server in a second: more than a client can read. */
const maxNotifications = 2_000;

/** The most tools of one server, and how long they may be as JSON, all together. */
const toolLimits = { count: 1_000, length: 2_097_152 } as const;

/** Cuts the list of a server's tools where it gets too long for a model and for memory. */
export interface ToolLimit {
  /** Reads a list; the error tells which of its tools are left out. */
  during<T>(read: () => Promise<T>, report: (error: WaymarkError) => void): Promise<T>;
}

/**
 * Filters the messages of a connected transport. A server that sends too many notifications is disconnected by `end`; what it
 * sends after that is dropped unread. Lists of tools end at the limit: pages after it are not asked for. Results that are tasks,
 * which the client package refuses, pass in another form.
 */
export function filterIncoming(
  transport: Transport,
  server: string,
  end: (reason: string) => void,
): ToolLimit {
  const receive = transport.onmessage;
  let since = performance.now();
  let notifications = 0;
  let isEnded = false;
  const tools = { count: 0, length: 0 };
  let firstLeft: string | undefined;

  const fits = (tool: unknown): boolean => {
    tools.count += 1;
    if (tools.count <= toolLimits.count) tools.length += lengthOf(tool);
    if (tools.count <= toolLimits.count && tools.length <= toolLimits.length) return true;
    firstLeft ??= String((tool as { readonly name?: unknown } | null)?.name).slice(0, 100);
    return false;
  };
  const cut = (given: Result): Result => {
    const { tools: listed, nextCursor: _, ...result } = given;
    const end = Array.isArray(listed) ? listed.findIndex((tool) => !fits(tool)) : -1;
    return Array.isArray(listed) && end >= 0 ? { ...result, tools: listed.slice(0, end) } : given;
  };
  const isTooMany = (): boolean => {
    const now = performance.now();
    if (now - since > 1_000) {
      since = now;
      notifications = 0;
    }
    notifications += 1;
    return notifications > maxNotifications;
  };
  transport.onmessage = (message, extra) => {
    if (isEnded) return;
    if ('result' in message) {
      receive?.({ ...message, result: admitted(cut(message.result)) }, extra);
    } else if ('id' in message || !isTooMany()) receive?.(message, extra);
    else {
      isEnded = true;
      end(`sent more than ${maxNotifications} notifications in a second`);
    }
  };
  return {
    async during(read, report) {
      Object.assign(tools, { count: 0, length: 0 });
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

type Result = JSONRPCResultResponse['result'];

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

/** A result that the client package takes, with the id of the task that it started, if it is one. */
function admitted(result: Result): Result {
  const id = startedTask(result);
  return id === undefined
    ? result
    : { resultType: 'complete', content: [], _meta: { [taskKey]: id } };
}

function startedTask(result: Result): string | undefined {
  if (v.is(modernTask, result)) return result.taskId;
  return v.is(legacyTask, result) ? result.task.taskId : undefined;
}

/** The id of the task that a server started for a call; `undefined` if it has answered. */
export function taskOf(result: { readonly _meta?: CallToolResult['_meta'] }): string | undefined {
  const id = result._meta?.[taskKey];
  return typeof id === 'string' ? id : undefined;
}
