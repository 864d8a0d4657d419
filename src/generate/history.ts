import type { Message } from '../protocol/message.ts';
import type { Model } from './model.ts';

/** What a history selection may use. */
export interface HistoryScope {
  /** The model that is going to see the selection. */
  readonly model: Model;
  /** Aborts when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** Selects which messages are sent to the model. Does not change what is stored. */
export type HistorySelection = (
  messages: readonly Message[],
  scope: HistoryScope,
) => readonly Message[] | Promise<readonly Message[]>;

/** Counts the tokens of a message. */
export type TokenCounter = (message: Message) => number;

/** Sends at most the last `count` messages, starting with a user message. If none of them is from the user, it goes further back. */
export function lastMessages(count: number): HistorySelection {
  return (messages) => messages.slice(userStart(messages, messages.length - count));
}

/** Sends the latest messages that fit into a number of tokens, and at least those since the last user message. */
export function tokenBudget({
  maxTokens,
  count = estimateTokens,
}: {
  readonly maxTokens: number;
  /** @default a quarter of the message's length as JSON */
  readonly count?: TokenCounter;
}): HistorySelection {
  // Messages are immutable, so each is counted once.
  const counted = new WeakMap<Message, number>();
  const tokensOf = (message: Message): number => {
    let tokens = counted.get(message);
    if (tokens === undefined) {
      tokens = count(message);
      counted.set(message, tokens);
    }
    return tokens;
  };
  return (messages) => {
    let left = maxTokens;
    let start = messages.length;
    for (let at = messages.length - 1; at >= 0; at--) {
      const message = messages[at];
      left -= message ? tokensOf(message) : 0;
      if (left < 0) break;
      start = at;
    }
    return messages.slice(userStart(messages, start));
  };
}

/** About how many tokens a message has: four characters each. */
export function estimateTokens(message: Message): number {
  return Math.ceil(JSON.stringify(message.content).length / 4);
}

/**
 * Where a shortened conversation may begin: at the first user message from a place on, else at the last one before it.
 * Providers refuse a conversation that begins with an answer, or with a tool result without its request.
 */
export function userStart(messages: readonly Message[], from: number): number {
  for (let at = Math.max(from, 0); at < messages.length; at++) {
    if (messages[at]?.role === 'user') return at;
  }
  for (let at = Math.min(from, messages.length) - 1; at >= 0; at--) {
    if (messages[at]?.role === 'user') return at;
  }
  return 0;
}
