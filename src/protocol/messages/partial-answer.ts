import type { Part } from '../protocol/message.ts';
import { providerMetadataKey } from './language-model/prompt.ts';

/**
 * The part of a stopped answer that stays in the history: its text, media and data. Reasoning that is not finished has no signature, and a
 * tool request that was not finished was never run: providers refuse or ignore both when they come back. The same holds for
 * what a provider notes on a part that is not finished.
 */
export class PartialAnswer {
  #parts: Part[] = [];

  /** The content so far. */
  get content(): readonly Part[] {
    return this.#parts;
  }

  add(part: Part): void {
    const last = this.#parts.at(-1);
    if ('text' in part) {
      const kept = withoutProvider(part);
      if (last !== undefined && 'text' in last && kept.metadata === undefined) {
        this.#parts[this.#parts.length - 1] = { ...last, text: last.text + part.text };
      } else if (part.text !== '') this.#parts.push(kept);
    } else if ('data' in part || ('media' in part && part.metadata?.reasoning !== true)) {
      this.#parts.push(part);
    }
  }

  clear(): void {
    this.#parts = [];
  }
}

/** The parts of a stopped answer that stay in the history. */
export function keptParts(pieces: readonly Part[]): Part[] {
  const answer = new PartialAnswer();
  for (const piece of pieces) answer.add(piece);
  return [...answer.content];
}

function withoutProvider<Kind extends Part>(part: Kind): Kind {
  if (part.metadata?.[providerMetadataKey] === undefined) return part;
  const { [providerMetadataKey]: _, ...metadata } = part.metadata;
  const { metadata: __, ...bare } = part;
  return (Object.keys(metadata).length === 0 ? bare : { ...bare, metadata }) as Kind;
}
