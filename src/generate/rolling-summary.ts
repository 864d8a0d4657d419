import type { Message } from '../protocol/message.ts';
import { textOf } from '../protocol/messages/text.ts';
import type { HistoryScope, HistorySelection } from './history.ts';
import { generateScope } from './hooks.ts';
import { systemMessage, userMessage } from './message.ts';

/** What is to be put into a summary: what came before in brief, and the messages that followed. */
interface SummaryRequest {
  readonly previous: string | undefined;
  readonly messages: readonly Message[];
  readonly scope: HistoryScope;
}

/** Makes a summary. */
export type Summarize = (request: SummaryRequest) => Promise<string>;

/** How a rolling summary is kept. */
export interface RollingSummaryOptions {
  /**
   * Minimum number of latest messages that are sent unchanged.
   * @default 20
   */
  readonly keep?: number;
  /**
   * Number of messages per summary step.
   * @default 20
   */
  readonly every?: number;
  /** @default the model that answers, asked for a summary */
  readonly summarize?: Summarize;
}

/**
 * Shows the model the latest messages as they are, and a summary of the older ones. A new summary is made once for every
 * `every` messages, not in each turn.
 *
 * @example
 * app.defineAgent({ name: 'support', system: 'Help.', history: rollingSummary({ keep: 10 }) });
 */
export function rollingSummary({
  keep = 20,
  every = 20,
  summarize = askForSummary,
}: RollingSummaryOptions = {}): HistorySelection {
  // By the last message that is in it. Messages are immutable, and a session that is in use keeps them.
  const summaries = new WeakMap<Message, Promise<string>>();

  const summaryUpTo = (
    messages: readonly Message[],
    end: number,
    scope: HistoryScope,
  ): Promise<string> => {
    const last = messages[end - 1];
    const known = last && summaries.get(last);
    if (known) return known;
    const start = end - every;
    const made = (async () => {
      const previous = start > 0 ? await summaryUpTo(messages, start, scope) : undefined;
      return summarize({ previous, messages: messages.slice(Math.max(start, 0), end), scope });
    })();
    if (last) {
      summaries.set(last, made);
      // A summary that failed is tried again.
      made.catch(() => summaries.delete(last));
    }
    return made;
  };

  return async (messages, scope) => {
    const end = Math.floor((messages.length - keep) / every) * every;
    if (end <= 0) return messages;
    const summary = await summaryUpTo(messages, end, scope);
    const told = userMessage(`Summary of the conversation before this:\n${summary}`);
    let start = end;
    // A result is shown with the request it answers, also when the summary has both.
    while (start > 0 && messages[start]?.role === 'tool') start--;
    return [told, ...messages.slice(start)];
  };
}

const task = systemMessage(
  'Sum up a conversation, so that it can be continued without its text. Keep names, numbers, decisions, open questions and results of tools. Answer with the summary only.',
);

async function askForSummary({ previous, messages, scope }: SummaryRequest): Promise<string> {
  const before = previous === undefined ? '' : `What came before:\n${previous}\n\n`;
  const said = messages.map(({ role, content }) => `${role}: ${contentText(content)}`).join('\n');
  const { model, signal } = scope;
  const hooks = generateScope.get()?.hooks;
  hooks?.beforeModelCall?.();
  const {
    message,
    finishReason,
    usage = {},
  } = await model.run(
    { messages: [task, userMessage(`${before}${said}`)], tools: [] },
    { signal, context: {}, stream: () => undefined },
  );
  await hooks?.onModelCall?.({ model: model.name, finishReason, usage });
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
