import * as v from 'valibot';
import { jsonObject } from '../../protocol/json-value.ts';
import { a2aPart } from './parts.ts';

/** The generations of the protocol that clients speak. */
export type Version = '1.0' | '0.3';

// Clients write fields that have no value as '', as null, or not at all.
const text = v.pipe(
  v.nullish(v.string()),
  v.transform((value) => value || undefined),
);
const count = v.pipe(
  v.nullish(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000))),
  v.transform((value) => value ?? undefined),
);
const id = v.pipe(v.string(), v.minLength(1));

export const pushConfig = v.object({
  id: text,
  taskId: text,
  url: v.pipe(v.string(), v.minLength(1), v.maxLength(2_048)),
  token: text,
  authentication: v.nullish(v.object({ scheme: text, credentials: text })),
});
export interface PushConfig extends v.InferOutput<typeof pushConfig> {}

const message = v.object({
  messageId: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  contextId: text,
  taskId: text,
  role: v.literal('ROLE_USER', 'Clients send messages of the role ROLE_USER'),
  parts: v.pipe(v.array(a2aPart), v.minLength(1)),
  metadata: v.nullish(jsonObject),
});
export interface A2aMessage extends v.InferOutput<typeof message> {}

export const sendParams = v.object({
  message,
  configuration: v.nullish(
    v.object({
      historyLength: count,
      returnImmediately: v.nullish(v.boolean()),
      taskPushNotificationConfig: v.nullish(pushConfig),
    }),
  ),
});
export interface SendParams extends v.InferOutput<typeof sendParams> {}

export const taskParams = v.object({ id, historyLength: count });

export const listParams = v.object({
  contextId: text,
  status: v.nullish(v.union([v.string(), v.number()])),
  pageSize: count,
  pageToken: text,
  historyLength: count,
  statusTimestampAfter: text,
  includeArtifacts: v.nullish(v.boolean()),
});

export const configParams = v.object({ taskId: id, id: text });
