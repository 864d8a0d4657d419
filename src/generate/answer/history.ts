import { getOrMake } from '../../core/get-or-make.ts';
import { contentHash, sha256 } from '../../core/json/hash.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import { type Summary, summaryIn, textOf } from '../../protocol/messages.ts';
import type { Model } from '../model.ts';
import { systemMessage, userMessage } from '../template.ts';
import { runModel } from './run-model.ts';

/** The second argument of a history selection. */
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

type TokenCounter = (message: Message) => number;

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
  const tokensOf = (message: Message): number => getOrMake(counted, message, () => count(message));
  return (messages) => messages.slice(startWithin(messages, maxTokens, tokensOf));
}

/** About how many tokens a message has: four characters each. */
export function estimateTokens(message: Message): number {
  return Math.ceil(JSON.stringify(message.content).length / 4);
}

/**
 * Where a shortened conversation may begin: at the first user message from a place on, else at the last one before it.
 * Providers refuse a conversation that begins with an answer, or with a tool result without its request.
 */
function userStart(messages: readonly Message[], from: number): number {
  for (let at = Math.max(from, 0); at < messages.length; at++) {
    if (messages[at]?.role === 'user') return at;
  }
  for (let at = Math.min(from, messages.length) - 1; at >= 0; at--) {
    if (messages[at]?.role === 'user') return at;
  }
  return 0;
}

/** Where the latest messages begin that fit into a number of tokens, at `from` at the earliest. */
function startWithin(
  messages: readonly Message[],
  maxTokens: number,
  count: TokenCounter,
  from = 0,
): number {
  let left = maxTokens;
  let start = messages.length;
  for (let at = messages.length - 1; at >= from; at--) {
    const message = messages[at];
    left -= message ? count(message) : 0;
    if (left < 0) break;
    start = at;
  }
  return userStart(messages, start);
}

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

/** The messages of a conversation that the model gets. */
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
  const end = startWithin(messages, keep, count, from);
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

// Messages are immutable, so each is hashed once.
const hashes = new WeakMap<Message, string>();

/** The address of a summary of the first messages. Metadata is left out: the model does not get it. */
function addressOf(messages: readonly Message[], end: number, version: string): string {
  const parts = messages.slice(0, end).map((message) =>
    getOrMake(hashes, message, () => {
      const { role, content } = message;
      return contentHash({ role, content } as unknown as Json);
    }),
  );
  return sha256(JSON.stringify([version, ...parts]));
}

function remember(options: CompactOptions, hash: string, text: string): void {
  const known = getOrMake(remembered, options, () => new Map());
  const [oldest] = known.keys();
  if (known.size >= maxRemembered && oldest !== undefined) known.delete(oldest);
  known.set(hash, text);
}

/** The content of a summary: the summary before it, and the messages that followed. */
export interface SummaryRequest {
  /** The summary so far, if there is one. */
  readonly previous: string | undefined;
  /** The messages to summarize. */
  readonly messages: readonly Message[];
  /** The model that will read the summary, and the signal of the turn. */
  readonly scope: HistoryScope;
}

type Summarize = (request: SummaryRequest) => Promise<string>;

const task = systemMessage(
  'Sum up a conversation, so that it can be continued without its text. Keep names, numbers, decisions, open questions and results of tools. Answer with the summary only.',
);

/** Asks the model that answers for a summary. */
async function askForSummary({ previous, messages, scope }: SummaryRequest): Promise<string> {
  const before = previous === undefined ? '' : `What came before:\n${previous}\n\n`;
  const said = messages.map(({ role, content }) => `${role}: ${contentText(content)}`).join('\n');
  const { model, signal } = scope;
  const { message } = await runModel(
    model,
    { messages: [task, userMessage(`${before}${said}`)], tools: [] },
    { signal, context: {}, stream: () => undefined },
  );
  return textOf(message);
}

function contentText(content: Message['content']): string {
  return content
    .map((part) => {
      if ('text' in part) return part.text;
      if ('toolRequest' in part) return JSON.stringify(part.toolRequest);
      return 'toolResponse' in part ? JSON.stringify(part.toolResponse) : '';
    })
    .join('');
}
