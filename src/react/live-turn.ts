import type { Message, Part, ToolRequest } from '../protocol/message.ts';
import type { ModelChunk } from '../protocol/turn.ts';

/**
 * What is known of a turn while it runs: what was sent, and the messages its chunks add up to so far. Every change makes
 * a new array and a new last message; the messages before it stay the objects they were.
 */
export class LiveTurn {
  #messages: readonly Message[];
  readonly #sent: readonly Message[];
  // The place the model gave its last message; a chunk of another place begins a new one.
  #index: number | undefined;
  // A detached run works off several inputs: where the messages of its current turn begin.
  #turn: { readonly index: number; readonly from: number } | undefined;

  constructor(sent: readonly Message[] = []) {
    this.#sent = sent;
    this.#messages = sent;
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** The answer that is being written; `undefined` while there is none. */
  get answer(): Message | undefined {
    const last = this.#messages.length > this.#sent.length ? this.#messages.at(-1) : undefined;
    return last?.role === 'model' ? last : undefined;
  }

  add({ role = 'model', index, content }: ModelChunk): void {
    const last = this.#messages.length > this.#sent.length ? this.#messages.at(-1) : undefined;
    if (last?.role === role && this.#index === index) {
      this.#messages = [...this.#messages.slice(0, -1), extended(last, content)];
    } else {
      this.#index = index;
      this.#messages = [...this.#messages, extended({ role, content: [] }, content)];
    }
  }

  /** A turn begins; or begins again, after a takeover, and nothing that came of it stands. */
  start(turnIndex: number): void {
    if (this.#turn?.index === turnIndex) this.#messages = this.#messages.slice(0, this.#turn.from);
    this.#turn = { index: turnIndex, from: this.#messages.length };
    this.#index = undefined;
  }

  /**
   * Another process took the turn over: what came after the last checkpoint comes again. Checkpoints are made when all
   * tools of a model message have answered, so what came after the last tool message goes.
   */
  reset(): void {
    const lastTool = this.#messages.findLastIndex(({ role }) => role === 'tool');
    this.#messages = this.#messages.slice(0, Math.max(lastTool + 1, this.#sent.length));
    this.#index = undefined;
  }
}

/** A message with more parts; continued text and reasoning are joined, a tool's partial output is replaced. */
function extended(message: Message, parts: readonly Part[]): Message {
  const content = [...message.content];
  for (const part of parts) {
    const last = content.at(-1);
    if (last && 'text' in last && 'text' in part && !part.metadata) {
      content[content.length - 1] = { ...last, text: last.text + part.text };
    } else if (last && 'reasoning' in last && 'reasoning' in part) {
      content[content.length - 1] = {
        ...last,
        ...part,
        reasoning: last.reasoning + part.reasoning,
      };
    } else {
      const place = content.findIndex((other) => isNewerOf(part, other));
      if (place === -1) content.push(part);
      else content[place] = part;
    }
  }
  return { ...message, content };
}

function isNewerOf(part: Part, other: Part): boolean {
  if ('toolResponse' in part && 'toolResponse' in other) {
    return isSame(part.toolResponse, other.toolResponse) && other.metadata?.partial === true;
  }
  if ('toolRequest' in part && 'toolRequest' in other) {
    return part.toolRequest.ref !== undefined && isSame(part.toolRequest, other.toolRequest);
  }
  return false;
}

function isSame(
  a: Pick<ToolRequest, 'name' | 'ref'>,
  b: Pick<ToolRequest, 'name' | 'ref'>,
): boolean {
  return a.name === b.name && a.ref === b.ref;
}

/** The text of a message, without its reasoning. */
export function textOf(message: Message | undefined): string {
  let text = '';
  for (const part of message?.content ?? []) if ('text' in part) text += part.text;
  return text;
}
