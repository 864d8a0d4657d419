import type { Message } from '../protocol/message.ts';
import { textOf } from '../protocol/messages/text.ts';
import type { HistoryScope } from './history.ts';
import { systemMessage, userMessage } from './message.ts';
import { runModel } from './run-model.ts';

/** What is to be put into a summary: what came before in brief, and the messages that followed. */
export interface SummaryRequest {
  /** The summary so far, if there is one. */
  readonly previous: string | undefined;
  /** The messages to summarize. */
  readonly messages: readonly Message[];
  /** The model that will read the summary, and the signal of the turn. */
  readonly scope: HistoryScope;
}

/** Makes a summary. */
export type Summarize = (request: SummaryRequest) => Promise<string>;

const task = systemMessage(
  'Sum up a conversation, so that it can be continued without its text. Keep names, numbers, decisions, open questions and results of tools. Answer with the summary only.',
);

/** Asks the model that answers for a summary. */
export async function askForSummary({
  previous,
  messages,
  scope,
}: SummaryRequest): Promise<string> {
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
