import type { Part } from '../message.ts';
import { joinText } from './append-parts.ts';
import { withoutProviderMetadata } from './provider-metadata.ts';

/**
 * The part of a stopped answer that is kept: its text, media and data. Unfinished reasoning has no signature, and an unfinished
 * tool request was never run: providers reject or ignore both when they are sent back. The same holds for a provider's
 * data on an unfinished part.
 */
export class PartialAnswer {
  #parts: Part[] = [];

  /** The content so far. */
  get content(): readonly Part[] {
    return this.#parts;
  }

  add(part: Part): void {
    if ('text' in part) {
      const kept = withoutProviderMetadata(part);
      if (!joinText(this.#parts, kept) && part.text !== '') this.#parts.push(kept);
    } else if ('data' in part || ('media' in part && part.metadata?.reasoning !== true)) {
      this.#parts.push(part);
    }
  }

  clear(): void {
    this.#parts = [];
  }
}

/** The parts that are kept of a stopped answer. */
export function keptParts(pieces: readonly Part[]): Part[] {
  const answer = new PartialAnswer();
  for (const piece of pieces) answer.add(piece);
  return [...answer.content];
}
