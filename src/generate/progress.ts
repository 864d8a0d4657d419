import type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { keptParts } from '../protocol/messages/partial-answer.ts';
import { parseMessage } from '../protocol/parse.ts';
import type { ModelChunk, Usage } from '../protocol/turn.ts';
import { addUsage } from '../protocol/usage.ts';
import type { GenerateProgress } from './hooks.ts';
import { toolMessage } from './message.ts';
import { closedResponse } from './open-requests.ts';

/** What a tool call came to. */
export type ToolOutcome =
  | { readonly response: ToolResponsePart }
  | { readonly interrupted: ToolRequestPart };

/** What a generate call has produced so far: whole messages, and what is being worked on. */
export class Progress implements GenerateProgress {
  readonly #whole: Message[] = [];
  #usage: Usage = {};
  #answer: Part[] = [];
  #requests: readonly ToolRequestPart[] = [];
  #outcomes: (ToolOutcome | undefined)[] = [];

  /** How many whole messages there are; the place of the next one. */
  get length(): number {
    return this.#whole.length;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The whole messages, in order; the caller's own array. */
  whole(): Message[] {
    return [...this.#whole];
  }

  /**
   * Everything so far as messages that every provider takes: of an answer that is still coming what can be kept of it,
   * and for each tool that is still running a response that says so.
   */
  get messages(): readonly Message[] {
    const messages = this.whole();
    const content = keptParts(this.#answer);
    if (content.length > 0) messages.push(parseMessage({ role: 'model', content }));
    if (this.#requests.length > 0) messages.push(parseMessage(this.#closedRound()));
    return messages;
  }

  /** Checks, freezes and adds a message; what was being worked on is done with it. */
  add(message: Message): Message {
    const frozen = parseMessage(message);
    this.#whole.push(frozen);
    this.#answer = [];
    this.#requests = [];
    return frozen;
  }

  /** Puts another message in the place of the last one. */
  replaceLast(message: Message): Message {
    this.#whole.pop();
    return this.add(message);
  }

  addUsage(usage: Usage | undefined): void {
    this.#usage = addUsage(this.#usage, usage);
  }

  /** Takes note of a piece of the answer that is coming. */
  addChunk({ content }: ModelChunk): void {
    for (const part of content) this.#answer.push(part);
  }

  /** An answer begins, or begins again. */
  startAnswer(): void {
    this.#answer = [];
  }

  /** Tools begin to run. */
  startTools(requests: readonly ToolRequestPart[]): void {
    this.#requests = requests;
    this.#outcomes = [];
  }

  /** A tool has come to an end. */
  endTool(index: number, outcome: ToolOutcome): void {
    this.#outcomes[index] = outcome;
  }

  #closedRound(): Message {
    return toolMessage(
      this.#requests.map((request, index) => {
        const outcome = this.#outcomes[index];
        return outcome && 'response' in outcome
          ? outcome.response
          : closedResponse(request, 'aborted');
      }),
    );
  }
}
