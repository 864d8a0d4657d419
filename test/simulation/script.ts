import type { Message, Part } from '../../src/protocol/message.ts';

// The conversation of the simulated desk as pure functions of its messages. The model answers by them and the oracle checks by them;
// neither depends on the code under test.

/** The commands that a user message can give to the model. */
export type Command =
  | 'say'
  | 'charge'
  | 'job'
  | 'note'
  | 'multi'
  | 'book'
  | 'fail'
  | 'hang'
  | 'steer';

/** The tools that the model calls for a command, one per round. */
const toolsOf: Readonly<Record<Command, readonly string[]>> = {
  say: [],
  charge: ['charge'],
  job: ['job'],
  note: ['note'],
  multi: ['charge', 'note', 'job'],
  book: ['book'],
  fail: [],
  hang: [],
  steer: [],
};

/** A user message: `#<tag> <command>`. */
export interface Ask {
  readonly tag: string;
  readonly command: Command;
}

export function askText({ tag, command }: Ask): string {
  return `#${tag} ${command}`;
}

function parseAsk(message: Message): Ask | undefined {
  const [, tag, command] = /^#(\S+) (\w+)$/.exec(textIn(message)) ?? [];
  return tag === undefined ? undefined : { tag, command: command as Command };
}

function textIn({ content }: Message): string {
  return content.map((part) => ('text' in part ? part.text : '')).join('');
}

/** The answer of the model: tool calls, or the final text. */
export interface Reply {
  readonly tool?: { readonly name: string; readonly tag: string };
  readonly text?: string;
  /** The model pauses after the first piece of its text. */
  readonly hangs?: boolean;
  readonly fails?: boolean;
}

/** The reply to a conversation. */
export function replyTo(messages: readonly Message[]): Reply {
  const asks = openAsks(messages);
  const last = asks.at(-1);
  if (last?.ask.command === 'fail') return { fails: true };
  for (const { ask, called } of asks) {
    const name = toolsOf[ask.command].find((tool) => !called.has(tool));
    if (name !== undefined) return { tool: { name, tag: ask.tag } };
  }
  const text = `re ${asks.map(({ ask }) => `#${ask.tag}`).join(' ')}.`;
  return { text, hangs: last?.ask.command === 'hang' };
}

/** The user messages since the last final answer, with the tools called for each. */
function openAsks(
  messages: readonly Message[],
): { readonly ask: Ask; readonly called: Set<string> }[] {
  let open: { readonly ask: Ask; readonly called: Set<string> }[] = [];
  for (const message of messages) {
    const ask = message.role === 'user' ? parseAsk(message) : undefined;
    if (ask !== undefined) open.push({ ask, called: new Set() });
    if (message.role !== 'model') continue;
    const calls = message.content.flatMap((part) => toolCallIn(part) ?? []);
    if (calls.length === 0) open = [];
    for (const { name, tag } of calls) open.find(({ ask }) => ask.tag === tag)?.called.add(name);
  }
  return open;
}

function toolCallIn(part: Part): { readonly name: string; readonly tag: string } | undefined {
  if (!('toolRequest' in part)) return undefined;
  const { name, input } = part.toolRequest;
  return { name, tag: (input as { readonly tag: string }).tag };
}

/** The tags of the user messages, in order. */
export function tagsIn(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === 'user' ? (parseAsk(message)?.tag ?? []) : [],
  );
}

/** The tags whose `note` tool has answered, in order. */
export function notesIn(messages: readonly Message[]): string[] {
  return messages.flatMap(({ role, content }) =>
    role !== 'tool'
      ? []
      : content.flatMap((part) =>
          'toolResponse' in part && part.toolResponse.name === 'note'
            ? [String(part.toolResponse.output).replace('note ', '')]
            : [],
        ),
  );
}

/** Faults of a conversation: each message of the model must be the reply to those before it, or the beginning of it if it was stopped. */
export function faultsIn(
  messages: readonly Message[],
  isStopped: (tag: string) => boolean,
): string[] {
  const faults: string[] = [];
  const tags = tagsIn(messages);
  if (new Set(tags).size < tags.length) faults.push(`a message is there twice: ${tags.join(' ')}`);
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'model') continue;
    const before = messages.slice(0, at);
    const expected = replyTo(before);
    const call = message.content.flatMap((part) => toolCallIn(part) ?? [])[0];
    const text = textIn(message);
    if (expected.tool !== undefined) {
      if (call?.name !== expected.tool.name || call.tag !== expected.tool.tag) {
        faults.push(
          `message ${at} is not ${expected.tool.name} of ${expected.tool.tag}: ${JSON.stringify(message.content)}`,
        );
      }
    } else if (text !== expected.text) {
      const stopped = tagsIn(before).some(isStopped);
      if (!stopped || !expected.text?.startsWith(text)) {
        faults.push(`message ${at} is "${text}" instead of "${expected.text}"`);
      }
    }
  }
  return faults;
}
