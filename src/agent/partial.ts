import type { Message, Part } from '../protocol/message.ts';
import type { ModelChunk } from '../protocol/turn.ts';

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
