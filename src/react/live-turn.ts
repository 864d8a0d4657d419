import { isJsonObject } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { appendParts } from '../protocol/messages/append-parts.ts';
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
      this.#messages = [
        ...this.#messages.slice(0, -1),
        { ...last, content: appendParts([...last.content], content) },
      ];
    } else {
      this.#index = index;
      this.#messages = [...this.#messages, { role, content: appendParts([], content) }];
    }
  }

  /** A message was added to the running turn. After a takeover it may come again. */
  steer(message: Message): void {
    const id = steeredId(message);
    const known = this.#messages.filter((other) => id === undefined || steeredId(other) !== id);
    this.#messages = [...known, message];
    this.#index = undefined;
  }

  /** A turn begins; or begins again, after a takeover, and nothing that came of it stands. */
  start(turnIndex: number): void {
    if (this.#turn?.index === turnIndex) this.#messages = this.#messages.slice(0, this.#turn.from);
    this.#turn = { index: turnIndex, from: this.#messages.length };
    this.#index = undefined;
  }

  /**
   * Another process took the turn over: what came after the last checkpoint comes again. Checkpoints are made when all
   * tools of a model message have answered and with messages that were added, so what came after the last of these goes.
   */
  reset(): void {
    const lastTool = this.#messages.findLastIndex(
      (message) => message.role === 'tool' || steeredId(message) !== undefined,
    );
    this.#messages = this.#messages.slice(0, Math.max(lastTool + 1, this.#sent.length));
    this.#index = undefined;
  }
}

/** The id that the sender gave to a message that was added to a running turn. */
export function steeredId({ metadata }: Message): string | undefined {
  const steered = metadata?.steered;
  return isJsonObject(steered) && typeof steered.id === 'string' ? steered.id : undefined;
}
