import * as v from 'valibot';
import { failedPrecondition, type WaymarkError } from '../core/error.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../core/json/json.ts';
import { untrustedSchema } from '../core/schema/untrusted-schema.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import type { OutgoingMessage } from './client.ts';
import {
  questions as questionsShape,
  type RemoteMessage,
  type RemotePart,
  type RemoteQuestion,
  type RemoteTask,
} from './shapes.ts';

/** The state of a task in the words of 0.3, which are those of 1.0 without their prefix. */
export function stateOf({ status }: RemoteTask): string {
  return status.state
    .replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replaceAll('_', '-');
}

/** The result of the tool: the answer of the remote agent. Files are attached. */
export function resultOf(given: RemoteTask | RemoteMessage, context: ToolContext): Json {
  const parts = 'status' in given ? partsOf(given) : (given.parts ?? []);
  context.attach(...parts.flatMap(toMedia));
  const text = textOf(parts);
  const data = parts.flatMap((part) => (part.data === undefined ? [] : [part.data as Json]));
  return data.length === 0 ? text : { text, data };
}

function partsOf({ artifacts, status, history }: RemoteTask): readonly RemotePart[] {
  const found = (artifacts ?? []).flatMap(({ parts }) => parts ?? []);
  if (found.length > 0) return found;
  // Some agents answer in the status, others with a message.
  const last = history?.findLast(({ role }) => role === 'ROLE_AGENT' || role === 'agent');
  return status.message?.parts ?? last?.parts ?? [];
}

export function failureOf(name: string, task: RemoteTask): WaymarkError {
  const state = stateOf(task);
  const text = textOf(task.status.message?.parts ?? []).slice(0, 400);
  const why = text === '' ? '' : ` ${text}`;
  return failedPrecondition(
    `The task of the remote agent "${name}" ended as ${state.slice(0, 32)}.${why}`,
  );
}

function textOf(parts: readonly RemotePart[]): string {
  return parts.map(({ text }) => text ?? '').join('');
}

function toMedia({ raw, url, mediaType, file }: RemotePart): JsonObject[] {
  const bytes = raw ?? file?.bytes;
  const type = mediaType ?? file?.mimeType ?? 'application/octet-stream';
  const at = bytes ? `data:${type};base64,${bytes}` : (url ?? file?.uri);
  return at && /^(https?|data):/i.test(at) ? [{ media: { url: at, contentType: type } }] : [];
}

/** The task that waits for an answer, kept with the interrupt. */
const handle = v.object({
  taskId: v.string(),
  contextId: v.optional(v.string()),
  /** The keys of the questions, where the remote agent has given them. */
  keys: v.optional(v.array(v.string())),
});
export interface TaskHandle extends v.InferOutput<typeof handle> {}

const maxMessageLength = 4_000;

/** The data of the tool's interrupt: the question for a person, the schema of the answer, and the task. */
export function interruptData(task: RemoteTask): Json {
  const { id: taskId, contextId, status } = task;
  const parts = status.message?.parts ?? [];
  const asked = questionsIn(parts.map(({ data }) => data));
  const text = parts
    .map((part) => part.text ?? '')
    .filter(Boolean)
    .join('\n');
  const message = text || 'The remote agent needs input.';
  const keys = asked.map(({ key }) => key);
  const schema = schemaOf(asked);
  untrustedSchema(schema);
  return toJson(
    {
      message: message.slice(0, maxMessageLength),
      schema,
      a2a: { taskId, contextId: contextId || undefined, keys: keys.length > 0 ? keys : undefined },
    },
    'The question of the remote agent',
  );
}

/** The task of a call that was interrupted before; `undefined` the first time. */
export function handleOf(interrupted: Json | undefined): TaskHandle | undefined {
  if (interrupted === undefined || !isJsonObject(interrupted)) return undefined;
  const parsed = v.safeParse(handle, interrupted.a2a);
  return parsed.success ? parsed.output : undefined;
}

function questionsIn(data: readonly unknown[]): readonly RemoteQuestion[] {
  for (const each of data) {
    const parsed = v.safeParse(questionsShape, each);
    if (parsed.success) return parsed.output.questions;
  }
  return [];
}

function schemaOf(asked: readonly RemoteQuestion[]): JsonObject {
  const [first, ...others] = asked;
  if (!first) {
    return { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };
  }
  if (others.length === 0) return first.schema as JsonObject;
  const properties = Object.fromEntries(asked.map(({ key, schema }) => [key, schema]));
  return { type: 'object', properties, required: asked.map(({ key }) => key) } as JsonObject;
}

/** The answer of a person as a message. `true` approves. */
export function answerMessage(
  { keys = [] }: TaskHandle,
  resumed: Json,
): Pick<OutgoingMessage, 'text' | 'data'> {
  if (typeof resumed === 'string') return { text: resumed };
  if (typeof resumed === 'boolean') {
    return keys.length === 1 ? { data: { approved: resumed } } : { text: resumed ? 'yes' : 'no' };
  }
  if (keys.length > 1) return { data: { answers: resumed } };
  // An agent that gave no schema expects text.
  if (keys.length === 0 && isJsonObject(resumed) && typeof resumed.answer === 'string') {
    return { text: resumed.answer };
  }
  return { data: resumed };
}
