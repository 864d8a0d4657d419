import { isJsonObject } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { appendParts, textOf } from '../protocol/messages.ts';
import type { Chunk, ModelChunk, Reset } from '../protocol/turn.ts';
import { MessageViews } from './message-view.ts';
import type { SubAgentView } from './view.ts';

/** The turn of a streamed message and its index in the turn, where they are known. */
interface Place {
  readonly turnIndex: number | undefined;
  readonly index: number | undefined;
}

/**
 * A running turn: the messages that were sent, and those that its chunks add up to so far. Every change makes
 * a new array and a new last message; the messages before it stay the objects they were.
 */
export class LiveTurn {
  #messages: readonly Message[];
  readonly #sent: readonly Message[];
  /** The places of the messages after those that were sent. */
  #places: readonly Place[] = [];
  /** Whether the next chunk of the last message's index continues that message. */
  #isOpen = false;
  // A detached run works off several inputs: its current turn.
  #turnIndex: number | undefined;

  constructor(sent: readonly Message[] = []) {
    this.#sent = sent;
    this.#messages = sent;
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** The answer that is being written; `undefined` while there is none. */
  get answer(): Message | undefined {
    const last = this.#places.length > 0 ? this.#messages.at(-1) : undefined;
    return last?.role === 'model' ? last : undefined;
  }

  add({ role = 'model', index, content }: ModelChunk): void {
    const last = this.#isOpen ? this.#messages.at(-1) : undefined;
    if (last?.role === role && this.#places.at(-1)?.index === index) {
      this.#messages = [
        ...this.#messages.slice(0, -1),
        { ...last, content: appendParts([...last.content], content) },
      ];
      return;
    }
    this.#push({ role, content: appendParts([], content) }, index);
    this.#isOpen = true;
  }

  /** A message was added to the running turn. After a takeover it may come again. */
  steer(message: Message): void {
    const id = steeredId(message);
    if (id !== undefined) this.#keep((_, other) => steeredId(other) !== id);
    const last = this.#places.at(-1);
    // Messages of earlier turns come before those of this one.
    const index = last?.turnIndex === this.#turnIndex ? (last?.index ?? -1) + 1 : -1;
    this.#push(message, index);
    this.#isOpen = false;
  }

  /** A turn begins; or begins again, after a takeover, and nothing that came of it stands. */
  start(turnIndex: number): void {
    this.#keep((place) => place.turnIndex !== turnIndex);
    this.#turnIndex = turnIndex;
  }

  /** Another process took over the run: drops the messages that no longer stand. */
  reset({
    turnIndex = this.#turnIndex ?? 0,
    index: first = this.#checkpoint(),
  }: Partial<Reset>): void {
    this.#keep(
      ({ turnIndex: turn = turnIndex, index = 0 }) =>
        turn < turnIndex || (turn === turnIndex && index < first),
    );
    this.#turnIndex = turnIndex;
  }

  /** The index after the last checkpoint, of a server that does not tell it: checkpoints follow tools and added messages. */
  #checkpoint(): number {
    const isSaved = (message: Message): boolean =>
      message.role === 'tool' || steeredId(message) !== undefined;
    const last = this.#messages.slice(this.#sent.length).findLastIndex(isSaved);
    return (this.#places[last]?.index ?? -1) + 1;
  }

  #push(message: Message, index: number | undefined): void {
    this.#messages = [...this.#messages, message];
    this.#places = [...this.#places, { turnIndex: this.#turnIndex, index }];
  }

  #keep(stands: (place: Place, message: Message) => boolean): void {
    this.#isOpen = false;
    const streamed = this.#messages.slice(this.#sent.length);
    const isKept = this.#places.map((place, at) => stands(place, streamed[at] as Message));
    if (!isKept.includes(false)) return;
    this.#messages = [...this.#sent, ...streamed.filter((_, at) => isKept[at])];
    this.#places = this.#places.filter((_, at) => isKept[at]);
  }
}

/** The id that the sender gave to a message that was added to a running turn. */
export function steeredId({ metadata }: Message): string | undefined {
  const steered = metadata?.steered;
  return isJsonObject(steered) && typeof steered.id === 'string' ? steered.id : undefined;
}

const none: readonly SubAgentView[] = [];
const atWork = { running: true, interrupts: [] };

export class SubAgents {
  /** A new list whenever one of them has said something; the views of the others stay the objects they were. */
  views = none;
  readonly #turns: { readonly live: LiveTurn; readonly messages: MessageViews }[] = [];

  fold(agent: string, { agentRef, modelChunk, status }: Chunk): void {
    const { views } = this;
    const known = views.findIndex((view) => view.agent === agent && view.ref === agentRef);
    const at = known < 0 ? views.length : known;
    this.#turns[at] ??= { live: new LiveTurn(), messages: new MessageViews() };
    const { live, messages } = this.#turns[at];
    if (modelChunk) live.add(modelChunk);
    this.views = views.toSpliced(at, 1, {
      agent,
      ref: agentRef,
      messages: messages.of(live.messages, atWork),
      text: textOf(live.answer),
      status: status ?? views[at]?.status,
    });
  }
}
