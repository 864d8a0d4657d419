import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import { jsonObject, jsonValue } from '../../protocol/json-value.ts';
import type { Part } from '../../protocol/message.ts';
import type { Fields } from './errors.ts';

/** A part of a message of A2A 1.0. */
export const a2aPart = v.object({
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

const mediaType = /^[\w.+-]{1,127}\/[\w.+-]{1,127}$/;

/** A part that a client sent, as a part of a message. */
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
  return new WaymarkError('INVALID_ARGUMENT', `A part of the message is not valid. ${why}`);
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
