import * as v from 'valibot';
import { steeredBy } from '../../agent/turn/steer.ts';
import { invalid } from '../../core/error.ts';
import { defined, isJsonObject, type Json } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { short } from '../http/answer.ts';

const text = v.nullish(v.string());

/** A part of a user's message or of a tool's result. `binary` is the form of 0.x clients. */
const contentPart = v.looseObject({
  type: v.string(),
  text,
  source: v.optional(v.looseObject({ type: v.string(), value: v.string(), mimeType: text })),
  mimeType: text,
  url: text,
  data: text,
});

/** A posted message; of the fields of each role, only those that say something to an agent are checked. */
const aguiMessage = v.looseObject({
  id: v.string(),
  role: v.string(),
  content: v.nullish(
    v.union([v.string(), v.array(contentPart), v.record(v.string(), v.unknown())]),
  ),
  toolCallId: text,
  error: text,
});

const aguiTool = v.looseObject({
  name: v.string(),
  description: text,
  parameters: v.optional(v.unknown()),
});

const resumeEntry = v.looseObject({
  interruptId: v.string(),
  status: v.picklist(['resolved', 'cancelled']),
  payload: v.optional(v.unknown()),
});

/** The longest id of a run: it is stored with the user's message. */
const maxRunId = 256;

/** The body of a request to run an agent (`RunAgentInput`), of protocol 1.0 and of 0.x. */
export const runRequest = v.object({
  threadId: v.pipe(v.string(), v.minLength(1)),
  runId: v.pipe(v.string(), v.minLength(1), v.maxLength(maxRunId)),
  parentRunId: text,
  /** Absent: a client from before 1.0. */
  protocolVersion: text,
  messages: v.array(aguiMessage),
  tools: v.nullish(v.array(aguiTool)),
  context: v.nullish(v.array(v.looseObject({ description: text, value: v.optional(v.unknown()) }))),
  resume: v.nullish(v.array(resumeEntry)),
});

export type RunRequest = v.InferOutput<typeof runRequest>;
export type PostedMessage = v.InferOutput<typeof aguiMessage>;
type PostedPart = v.InferOutput<typeof contentPart>;
export type ResumeEntry = v.InferOutput<typeof resumeEntry>;

/** The version that this server speaks. */
export const protocolVersion = '1.0';

export type AguiEvent = { readonly type: string; readonly [field: string]: unknown };

/** A message of a `MESSAGES_SNAPSHOT`. */
export type AguiMessage = {
  readonly id: string;
  readonly role: string;
  readonly [field: string]: unknown;
};

/** Metadata that this protocol adds to a user's message: the client's id of it, and of the run that it started. */
interface MessageMark {
  readonly id?: string | undefined;
  readonly runId?: string | undefined;
}

/** The user's posted messages as one message. The context of the run is a separate part, which clients do not get back. */
export function toUserMessage(
  posted: readonly PostedMessage[],
  { runId, context }: Pick<RunRequest, 'runId' | 'context'>,
): Message {
  const id = posted.at(-1)?.id;
  const content = posted.flatMap(toParts);
  return {
    role: 'user',
    content: [...toContextPart(context ?? []), ...content],
    metadata: { agui: { ...defined({ id }), runId } },
  };
}

export function toParts({ content }: Pick<PostedMessage, 'content'>): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }];
  return Array.isArray(content) ? (content as readonly PostedPart[]).map(toPart) : [];
}

function toPart({ type, text, source, mimeType, url, data }: PostedPart): Part {
  if (type === 'text') return { text: text ?? '' };
  if (type === 'binary' && url) return media(url, mimeType);
  if (type === 'binary' && data) return media(dataUrl(data, mimeType), mimeType);
  if (source?.type === 'url') return media(source.value, source.mimeType);
  if (source?.type === 'data') {
    return media(dataUrl(source.value, source.mimeType), source.mimeType);
  }
  throw invalid(
    `A part of type ${short(type)} cannot be read. Send text, or an image, audio, video or document with inline data or a URL.`,
  );
}

function media(url: string, contentType: string | null | undefined): Part {
  return { media: { url, ...defined({ contentType: contentType || undefined }) } };
}

function dataUrl(base64: string, mimeType: string | null | undefined): string {
  return `data:${mimeType ?? 'application/octet-stream'};base64,${base64}`;
}

function toContextPart(context: NonNullable<RunRequest['context']>): Part[] {
  if (context.length === 0) return [];
  const lines = context.map(({ description, value = '' }) => {
    const shown = typeof value === 'string' ? value : JSON.stringify(value);
    return description ? `${description}: ${shown}` : shown;
  });
  const text = `Context of the application:\n${lines.join('\n')}`;
  return [{ text, metadata: { agui: 'context' } }];
}

/** A user's message as clients hold it: a text, or parts where it has more than text. */
export function fromUserParts(content: readonly Part[]): string | readonly object[] {
  const parts = content.filter(({ metadata }) => metadata?.agui !== 'context');
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  if (parts.every((part) => 'text' in part)) return texts.join('');
  return parts.flatMap((part): readonly object[] => {
    if ('text' in part) return [{ type: 'text', text: part.text }];
    if (!('media' in part)) return [];
    const { url, contentType = '' } = part.media;
    const inline = /^data:([^;,]*);base64,(.*)$/s.exec(url);
    const source = inline
      ? { type: 'data', value: inline[2] ?? '', mimeType: inline[1] || contentType }
      : { type: 'url', value: url, mimeType: contentType || undefined };
    return [{ type: kindOf(contentType || (inline?.[1] ?? '')), source }];
  });
}

function kindOf(contentType: string): string {
  return /^(image|audio|video)\//.exec(contentType)?.[1] ?? 'document';
}

/** A value as the text of a tool call's arguments or result. */
export function asText(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** The id that a stored message of the user has in the thread: that of its client or of the sender that steered, else `name`. */
export function userMessageId(message: Message, name: string): string {
  return markOf(message).id ?? steeredBy(message)?.id ?? name;
}

export function markOf({ metadata }: Message): MessageMark {
  const mark = metadata?.agui;
  if (!isJsonObject(mark)) return {};
  const { id, runId } = mark;
  return {
    id: typeof id === 'string' ? id : undefined,
    runId: typeof runId === 'string' ? runId : undefined,
  };
}
