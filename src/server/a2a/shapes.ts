import * as v from 'valibot';
import { invalid, type WaymarkError } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import { jsonObject, jsonValue } from '../../protocol/json-value.ts';
import type { Part } from '../../protocol/message.ts';
import type { Fields } from '../http/json-rpc.ts';

export type Version = '1.0' | '0.3';

/** A part of a message of A2A 1.0. */
const a2aPart = v.object({
  text: v.nullish(v.string()),
  /** Base64. */
  raw: v.nullish(v.string()),
  url: v.nullish(v.string()),
  data: v.optional(jsonValue),
  mediaType: v.nullish(v.string()),
  filename: v.nullish(v.string()),
  metadata: v.nullish(jsonObject),
});
export interface A2aPart extends v.InferOutput<typeof a2aPart> {}

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

// Here and not where it is used: a bundle without A2A leaves out this module only if no other one needs it to load.
/** The task that a stored configuration follows. */
export const followed = v.object({
  agent: v.string(),
  taskId: v.string(),
  version: v.picklist(['1.0', '0.3']),
  config: pushConfig,
});
export type Followed = v.InferOutput<typeof followed>;

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

const mediaType = /^[\w.+-]{1,127}\/[\w.+-]{1,127}$/;

export function fromPart({ text, raw, url, data, ...about }: A2aPart): Part {
  const type = about.mediaType || undefined;
  if (type !== undefined && !mediaType.test(type)) throw badPart('Its mediaType is not one.');
  const contentType = type === undefined ? {} : { contentType: type };
  if (typeof text === 'string') return { text };
  if (typeof raw === 'string') {
    if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(raw)) throw badPart('`raw` is not Base64.');
    const bytes = raw.replaceAll('-', '+').replaceAll('_', '/');
    const dataUrl = `data:${type ?? 'application/octet-stream'};base64,${bytes}`;
    return { media: { url: dataUrl, ...contentType } };
  }
  if (typeof url === 'string') {
    if (!/^https?:\/\//i.test(url)) throw badPart('`url` must begin with http:// or https://.');
    return { media: { url, ...contentType } };
  }
  if (data !== undefined) return { data };
  throw badPart('It must have one of: text, raw, url, data.');
}

function badPart(why: string): WaymarkError {
  return invalid(`A part of the message is not valid. ${why}`);
}

/** Parts of a message as A2A shows them. Reasoning and tool calls are not shown. */
export function toParts(content: readonly Part[]): readonly Fields[] {
  return content.flatMap(toPart);
}

function toPart(part: Part): Fields[] {
  if ('text' in part) return part.text === '' ? [] : [textPart(part.text)];
  if ('data' in part) return [dataPart(part.data)];
  if ('resource' in part) return [{ url: part.resource.uri }];
  if (!('media' in part)) return [];
  const { url, contentType } = part.media;
  const [, type, raw] = /^data:([^;,]+)?(?:;[^;,]+)*;base64,(.*)$/s.exec(url) ?? [];
  const named = contentType ?? type;
  return [{ ...(raw === undefined ? { url } : { raw }), ...(named && { mediaType: named }) }];
}

export function textPart(text: string): Fields {
  return { text, mediaType: 'text/plain' };
}

export function dataPart(data: Json | JsonObject): Fields {
  return { data, mediaType: 'application/json' };
}
