import { contentHash, sha256 } from '../core/json/hash.ts';
import type { Json } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { type Summary, summaryIn } from '../protocol/messages/summary.ts';
import { estimateTokens, type HistoryScope, type TokenCounter, userStart } from './history.ts';
import { userMessage } from './message.ts';
import { askForSummary, type Summarize } from './summarize.ts';

/** When and how the older part of a conversation is summarized for the model. What is stored stays as it is. */
export interface CompactOptions {
  /** Summarizes when the model would get more tokens of the conversation than this. */
  readonly whenTokens: number;
  /**
   * Tokens of the latest messages that stay as they are; at least those since the last user message.
   * @default a quarter of `whenTokens`
   */
  readonly keepTokens?: number;
  /** Creates the summary. @default the model that answers, asked for a summary */
  readonly summarize?: Summarize;
  /**
   * Identifies the way summaries are made. Change it when you change `summarize`, so that old summaries are replaced.
   * @default '1'
   */
  readonly version?: string;
  /** Estimates the tokens of a message. @default a quarter of the message's length as JSON */
  readonly count?: TokenCounter;
}

/** What of a conversation the model gets. */
export interface Compacted {
  readonly messages: readonly Message[];
  /** A summary that was made just now, to be stored with the answer. */
  readonly made?: Summary;
}

/** The most summaries that are remembered for turns that fail before they are stored. */
const maxRemembered = 100;

// By their addresses. Each agent has its own: two summarizers may have the same version.
const remembered = new WeakMap<CompactOptions, Map<string, string>>();

/**
 * Replaces the older messages by their summary. One that is stored on the path is used as long as its address fits the messages
 * before it; a new one is made from it and the messages since. `force`: also below `whenTokens`, because the provider refused
 * the request as too long.
 */
export async function compactMessages(
  messages: readonly Message[],
  options: CompactOptions,
  scope: HistoryScope,
  force = false,
): Promise<Compacted> {
  const { whenTokens, keepTokens = Math.floor(whenTokens / 4), version = '1' } = options;
  const { summarize = askForSummary, count = estimateTokens } = options;
  const stored = storedSummary(messages, version);
  const from = stored?.messages ?? 0;
  const shown = withSummary(stored, messages);
  const tokensOf = (some: readonly Message[]): number =>
    some.reduce((sum, message) => sum + count(message), 0);
  if (tokensOf(shown) <= whenTokens && !force) return { messages: shown };
  // A request that was refused has to become much shorter, whatever the estimate says.
  const keep = force
    ? Math.min(keepTokens, Math.floor(tokensOf(messages.slice(from)) / 2))
    : keepTokens;
  const end = cutAt(messages, from, { keepTokens: keep, count });
  if (end <= from) return { messages: shown };
  const hash = addressOf(messages, end, version);
  let text = remembered.get(options)?.get(hash);
  if (text === undefined) {
    text = await summarize({ previous: stored?.text, messages: messages.slice(from, end), scope });
    remember(options, hash, text);
  }
  const made = { text, messages: end, hash };
  return { messages: withSummary(made, messages), made };
}

/** The latest summary on the path that replaces the messages before it. */
function storedSummary(messages: readonly Message[], version: string): Summary | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at];
    const summary = message && summaryIn(message);
    if (summary === undefined || summary.messages > at) continue;
    if (summary.hash === addressOf(messages, summary.messages, version)) return summary;
  }
  return undefined;
}

function withSummary(
  summary: Summary | undefined,
  messages: readonly Message[],
): readonly Message[] {
  if (summary === undefined) return messages;
  const told = userMessage(`Summary of the conversation before this:\n${summary.text}`);
  return [told, ...messages.slice(summary.messages)];
}

/** Where the messages begin that stay as they are: at a user message, so that no tool result is without its request. */
function cutAt(
  messages: readonly Message[],
  from: number,
  { keepTokens, count }: { readonly keepTokens: number; readonly count: TokenCounter },
): number {
  let left = keepTokens;
  let start = messages.length;
  for (let at = messages.length - 1; at >= from; at--) {
    const message = messages[at];
    left -= message ? count(message) : 0;
    if (left < 0) break;
    start = at;
  }
  return userStart(messages, start);
}

// Messages are immutable, so each is hashed once.
const hashes = new WeakMap<Message, string>();

/** The address of a summary of the first messages. Metadata is left out: the model does not get it. */
function addressOf(messages: readonly Message[], end: number, version: string): string {
  const parts = messages.slice(0, end).map((message) => {
    let hash = hashes.get(message);
    if (hash === undefined) {
      const { role, content } = message;
      hash = contentHash({ role, content } as unknown as Json);
      hashes.set(message, hash);
    }
    return hash;
  });
  return sha256(JSON.stringify([version, ...parts]));
}

function remember(options: CompactOptions, hash: string, text: string): void {
  const known = remembered.get(options) ?? new Map<string, string>();
  const [oldest] = known.keys();
  if (known.size >= maxRemembered && oldest !== undefined) known.delete(oldest);
  known.set(hash, text);
  remembered.set(options, known);
}
