import { WaymarkError } from '../core/error.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import type { RemoteMessage, RemotePart, RemoteTask } from './shapes.ts';

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

/** The error of a task that came to nothing. */
export function failureOf(name: string, task: RemoteTask): WaymarkError {
  const state = stateOf(task);
  const text = textOf(task.status.message?.parts ?? []).slice(0, 400);
  const why = text === '' ? '' : ` ${text}`;
  return new WaymarkError(
    'FAILED_PRECONDITION',
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
