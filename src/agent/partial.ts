import { closeToolRequests } from '../generate/open-requests.ts';
import type { Message, Part } from '../protocol/message.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import type { WorkingState } from '../session/working-state.ts';
import { lastRound } from './turn-state.ts';

/** What the model has said since its last whole message: the answer that is left when a turn is stopped. */
export class PartialAnswer {
  #parts: Part[] = [];

  add(chunk: ModelChunk): void {
    if (chunk.role !== undefined && chunk.role !== 'model') return;
    for (const part of chunk.content) this.#addPart(part);
  }

  clear(): void {
    this.#parts = [];
  }

  /** The partial answer as a message; `undefined` when nothing has been said. */
  message(): Message | undefined {
    return this.#parts.length === 0 ? undefined : { role: 'model', content: this.#parts };
  }

  #addPart(part: Part): void {
    const last = this.#parts.at(-1);
    if ('text' in part) {
      if (last !== undefined && 'text' in last && part.metadata === undefined) {
        this.#parts[this.#parts.length - 1] = { ...last, text: last.text + part.text };
      } else if (part.text !== '') this.#parts.push(part);
    } else if ('media' in part || 'data' in part) {
      this.#parts.push(part);
    }
    // Half a reasoning has no signature, and half a tool request no input: a provider would refuse both.
  }
}

/** After a stop: what was said so far becomes the answer, and no tool request stays open, so that any provider takes it. */
export function keepPartialAnswer(stopped: {
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
}): void {
  const { working, partial } = stopped;
  const answer = partial.message();
  if (answer !== undefined) working.addMessages([answer]);
  const closing = closeToolRequests(lastRound(working.state.history), 'aborted');
  if (closing !== undefined) working.addMessages([closing]);
}
