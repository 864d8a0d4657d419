import type { JsonObject } from '../core/json/json.ts';
import type { Message, Part } from '../protocol/message.ts';
import { type Content, toParts } from './message.ts';

/** Something the model should know while it answers. */
interface Document {
  readonly content: Content;
  readonly metadata?: JsonObject;
}

/** A document, or its text. */
export type DocumentLike = string | Document;

/** A message with documents behind its own content, numbered so that an answer can refer to them. */
export function withDocuments(message: Message, docs: readonly DocumentLike[]): Message {
  if (docs.length === 0) return message;
  return { ...message, content: [...message.content, ...documentParts(docs)] };
}

function documentParts(docs: readonly DocumentLike[]): Part[] {
  const parts: Part[] = [{ text: '\n\nUse these documents where they help:' }];
  for (const [index, doc] of docs.entries()) {
    const { content, metadata } = typeof doc === 'string' ? { content: doc } : doc;
    const title = typeof metadata?.title === 'string' ? ` ${metadata.title}` : '';
    parts.push({ text: `\n\n[${index + 1}]${title}\n` }, ...toParts(content));
  }
  return parts;
}
