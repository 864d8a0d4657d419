import { isJsonObject } from '../core/json/json.ts';
import type { JsonObject } from '../core/json/types.ts';
import type { Message, Part, ToolRequest, ToolRequestPart } from './message.ts';

interface WithContent {
  readonly content: readonly Part[];
}

/** The text of a message or chunk, without reasoning; empty if there is none. */
export function textOf(message: WithContent | undefined): string {
  let text = '';
  for (const part of message?.content ?? []) if ('text' in part) text += part.text;
  return text;
}

/** The text of a message that has one text part and nothing else. */
export function plainTextOf(message: unknown): string | undefined {
  // A message that was read from a damaged file, or that a caller sends, may be anything.
  if (!isRecord(message) || !('role' in message) || Object.keys(message).length !== 2) {
    return undefined;
  }
  const { content } = message;
  if (!Array.isArray(content) || content.length !== 1) return undefined;
  const part: unknown = content[0];
  if (!isRecord(part) || !Object.hasOwn(part, 'text') || Object.keys(part).length !== 1) {
    return undefined;
  }
  const { text } = part;
  return typeof text === 'string' ? text : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

export function reasoningOf({ content }: WithContent): string {
  let text = '';
  for (const part of content) if ('reasoning' in part) text += part.reasoning;
  return text;
}

/** Tells the requests of one message apart; a request and its response have the same. */
export function requestKey({ name, ref }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return `${name}\n${ref ?? ''}`;
}

/** The tool requests of a message or chunk, without those that the provider ran itself. */
export function toolRequestsOf({ content }: WithContent): ToolRequestPart[] {
  return content.filter(
    (part): part is ToolRequestPart =>
      'toolRequest' in part && part.metadata?.providerExecuted !== true,
  );
}

/** The tool requests at the end of a conversation: those of the latest model message, and what came back for them. */
export interface ToolRound {
  /** All requests of the latest model message, in its order; one that was interrupted again as it is now. */
  readonly requests: readonly ToolRequestPart[];
  /** The requests that were answered in messages behind it, by request key. */
  readonly answered: ReadonlySet<string>;
}

/** The tool requests a conversation ends with; `undefined` if it ends with something else. */
export function lastToolRound(messages: readonly Message[]): ToolRound | undefined {
  let at = messages.length - 1;
  while (messages[at]?.role === 'tool') at--;
  const message = messages[at];
  if (message?.role !== 'model') return undefined;
  const requests = message.content.filter((part) => 'toolRequest' in part);
  if (requests.length === 0) return undefined;
  const answered = new Set<string>();
  const again = new Map<string, ToolRequestPart>();
  for (const { content } of messages.slice(at + 1)) {
    for (const part of content) {
      if ('toolResponse' in part) answered.add(requestKey(part.toolResponse));
      else if ('toolRequest' in part) again.set(requestKey(part.toolRequest), part);
    }
  }
  return {
    requests: requests.map((part) => again.get(requestKey(part.toolRequest)) ?? part),
    answered,
  };
}

/** The unanswered tool requests at the end of a conversation, including finished siblings of an interrupt. */
export function openToolRequests(messages: readonly Message[]): readonly ToolRequestPart[] {
  const round = lastToolRound(messages);
  if (!round) return [];
  return round.requests.filter(({ toolRequest }) => !round.answered.has(requestKey(toolRequest)));
}

/** The open requests that are interrupts and wait for an answer. */
export function pendingInterrupts(messages: readonly Message[]): readonly ToolRequestPart[] {
  return openToolRequests(messages).filter(isInterrupted);
}

/** Whether a request was interrupted and waits for an answer. A tool may interrupt with any value but `false`. */
export function isInterrupted({ metadata }: Pick<ToolRequestPart, 'metadata'>): boolean {
  return metadata?.interrupt !== undefined && metadata.interrupt !== false;
}

interface WithMetadata {
  readonly metadata?: JsonObject | undefined;
}

/** A part or message without one key of its metadata, and without metadata if there is no other key. */
export function withoutKey<Value extends WithMetadata>(value: Value, key: string): Value {
  if (value.metadata?.[key] === undefined) return value;
  const { [key]: _, ...metadata } = value.metadata;
  const { metadata: __, ...bare } = value;
  return (Object.keys(metadata).length === 0 ? bare : { ...bare, metadata }) as Value;
}

/** The key of a part's metadata under which the data of its provider is kept. */
export const providerMetadataKey = 'providerMetadata';

export function withoutProviderMetadata<Value extends WithMetadata>(value: Value): Value {
  return withoutKey(value, providerMetadataKey);
}

/**
 * Adds streamed parts to the content of a message, in place. Text and reasoning that continue the last part are joined to it, a
 * partial tool output is replaced by the next one, and a tool request by its complete form.
 */
export function appendParts(content: Part[], parts: readonly Part[]): Part[] {
  for (const part of parts) {
    if (joinText(content, part) || joinReasoning(content, part)) continue;
    const place = content.findIndex((other) => isNewerOf(part, other));
    if (place === -1) content.push(part);
    else content[place] = part;
  }
  return content;
}

/** Joins a text to the text that ends the content, unless it has metadata; returns whether it did. */
export function joinText(content: Part[], part: Part): boolean {
  const last = content.at(-1);
  if (!last || !('text' in last) || !('text' in part) || part.metadata) return false;
  content[content.length - 1] = { ...last, text: last.text + part.text };
  return true;
}

// The signature of a provider comes with the last piece of a reasoning.
function joinReasoning(content: Part[], part: Part): boolean {
  const last = content.at(-1);
  if (!last || !('reasoning' in last) || !('reasoning' in part)) return false;
  const reasoning = last.reasoning + part.reasoning;
  content[content.length - 1] = { ...last, ...part, reasoning };
  return true;
}

function isNewerOf(part: Part, other: Part): boolean {
  if ('toolResponse' in part && 'toolResponse' in other) {
    const isSame = requestKey(part.toolResponse) === requestKey(other.toolResponse);
    return isSame && other.metadata?.partial === true;
  }
  if ('toolRequest' in part && 'toolRequest' in other) {
    const isSame = requestKey(part.toolRequest) === requestKey(other.toolRequest);
    return isSame && part.toolRequest.ref !== undefined;
  }
  return false;
}

/**
 * The part of a stopped answer that is kept: its text, media and data. Unfinished reasoning has no signature, and an unfinished
 * tool request was never run: providers reject or ignore both when they are sent back. The same holds for a provider's
 * data on an unfinished part.
 */
export class PartialAnswer {
  // Joined when they are read: most answers are never stopped.
  #pieces: Part[] = [];

  /** The content so far. */
  get content(): Part[] {
    const content: Part[] = [];
    for (const piece of this.#pieces) {
      const part = 'text' in piece ? withoutProviderMetadata(piece) : piece;
      const isEmpty = 'text' in part && part.text === '';
      if (!joinText(content, part) && !isEmpty) content.push(part);
    }
    return content;
  }

  add(part: Part): void {
    const isKept =
      'text' in part || 'data' in part || ('media' in part && part.metadata?.reasoning !== true);
    if (isKept) this.#pieces.push(part);
  }

  clear(): void {
    this.#pieces = [];
  }
}

/** The summary that a model gets in place of the first messages of a conversation, which stay stored. */
export interface Summary {
  /** The text that replaces the messages. */
  readonly text: string;
  /** How many messages, counted from the first, it replaces. */
  readonly messages: number;
  /** The content address: the hash of these messages and of the summarizer's version. */
  readonly hash: string;
}

/** The summary that a message carries. Only answers of the model do: what clients send is no summary. */
export function summaryIn({ role, metadata }: Message): Summary | undefined {
  const summary = role === 'model' ? metadata?.summary : undefined;
  if (!isJsonObject(summary)) return undefined;
  const { text, messages, hash } = summary;
  if (typeof text !== 'string' || typeof messages !== 'number' || typeof hash !== 'string') {
    return undefined;
  }
  return { text, messages, hash };
}

/** The latest summary of a conversation; `undefined` if the model gets all of it. */
export function summaryOf(messages: readonly Message[]): Summary | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    const summary = message && summaryIn(message);
    if (summary !== undefined) return summary;
  }
  return undefined;
}
