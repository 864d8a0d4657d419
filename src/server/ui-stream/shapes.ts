import * as v from 'valibot';
import { isJsonObject } from '../../core/json/json.ts';
import type { ToolResponsePart } from '../../protocol/message.ts';
import { openApiPaths } from '../http/openapi.ts';

/** The parts of a UI message that say something to an agent; others are let through and ignored. */
const uiPart = v.looseObject({
  type: v.string(),
  text: v.optional(v.string()),
  url: v.optional(v.string()),
  mediaType: v.optional(v.string()),
  toolCallId: v.optional(v.string()),
  state: v.optional(v.string()),
  output: v.optional(v.unknown()),
  errorText: v.optional(v.string()),
  approval: v.optional(
    v.looseObject({ approved: v.optional(v.boolean()), reason: v.optional(v.string()) }),
  ),
});

const uiMessage = v.looseObject({
  id: v.optional(v.string()),
  role: v.picklist(['system', 'user', 'assistant']),
  parts: v.array(uiPart),
  metadata: v.optional(v.unknown()),
});

/** The body of `useChat`. `id` is the chat's, and the session's. */
export const uiRequest = v.object({
  id: v.string(),
  messages: v.pipe(v.array(uiMessage), v.minLength(1, 'Expected at least one message')),
  trigger: v.optional(v.picklist(['submit-message', 'regenerate-message'])),
  messageId: v.optional(v.string()),
});

export type UiPart = v.InferOutput<typeof uiPart>;
export type UiMessage = v.InferOutput<typeof uiMessage>;
export type UiRequest = v.InferOutput<typeof uiRequest>;

export type UiChunk = { readonly type: string; readonly [field: string]: unknown };

/** The snapshot after an answer. An answer that was interrupted and continued has the id of its first snapshot. */
export function snapshotAfter({ id, metadata }: UiMessage): string | undefined {
  const { snapshotId } = Object(metadata) as { readonly snapshotId?: unknown };
  return typeof snapshotId === 'string' ? snapshotId : id;
}

/** Whether a call was declined by the user, by an answer or by another message. */
export function isDeclined({ metadata }: ToolResponsePart): boolean {
  const { error } = metadata ?? {};
  return isJsonObject(error) && error.reason === 'declined';
}

const many = { type: 'array', items: { type: 'object' } };

/** The routes for `useChat`, for the OpenAPI document of the server. */
const routes = {
  uiTurn: { method: 'POST', path: '/ui/:agent' },
  uiResume: { method: 'GET', path: '/ui/:agent/:chat/stream' },
  uiStop: { method: 'POST', path: '/ui/:agent/:chat/stop' },
  uiMessages: { method: 'GET', path: '/ui/:agent/:chat/messages' },
};

export const uiPaths = {
  paths: openApiPaths(routes, {
    uiTurn: {
      summary: 'Runs a turn for `useChat`, and streams its UI messages.',
      body: { schema: 'UiRequest' },
      answer: { description: 'The UI messages.', events: true },
    },
    uiResume: {
      summary: 'The running turn of a chat from its beginning; 204 if none runs.',
      answer: { description: 'The UI messages.', events: true },
    },
    uiStop: {
      summary: 'Stops the running turn of a chat.',
      answer: { status: 204, description: 'It is stopped.' },
    },
    uiMessages: {
      summary: 'The stored messages of a chat, as UI messages.',
      answer: { description: 'The UI messages.', schema: 'UiMessages' },
    },
  }),
  schemas: {
    UiRequest: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id of the chat, which is that of the session.' },
        messages: { ...many, minItems: 1 },
        trigger: { enum: ['submit-message', 'regenerate-message'] },
        messageId: { type: 'string' },
      },
      required: ['id', 'messages'],
    },
    UiMessages: many,
  },
};
