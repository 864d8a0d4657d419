import type { CallToolResult, JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import * as v from 'valibot';

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
