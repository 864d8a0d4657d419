import { isJsonObject } from '../../core/json/json.ts';
import type { Message } from '../message.ts';

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
