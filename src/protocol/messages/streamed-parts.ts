import type { Part } from '../message.ts';
import { withoutProviderMetadata } from './metadata.ts';
import { requestKey } from './tool-round.ts';

/**
 * Adds streamed parts to the content of a message, in place. Text and reasoning that continue the last part are joined to it, a
 * partial tool output is replaced by the next one, and a tool request by its complete form.
 */
export function appendParts(content: Part[], parts: readonly Part[]): Part[] {
  for (const part of parts) {
    if (joinText(content, part) || joinReasoning(content, part)) continue;
    const place = content.findIndex((other) => isNewerOf(part, other));
    if (place === -1) content.push(part);
    else content[place] = part;
  }
  return content;
}

/** Joins a text to the text that ends the content, unless it has metadata; returns whether it did. */
export function joinText(content: Part[], part: Part): boolean {
  const last = content.at(-1);
  if (!last || !('text' in last) || !('text' in part) || part.metadata) return false;
  content[content.length - 1] = { ...last, text: last.text + part.text };
  return true;
}

// The signature of a provider comes with the last piece of a reasoning.
function joinReasoning(content: Part[], part: Part): boolean {
  const last = content.at(-1);
  if (!last || !('reasoning' in last) || !('reasoning' in part)) return false;
  const reasoning = last.reasoning + part.reasoning;
  content[content.length - 1] = { ...last, ...part, reasoning };
  return true;
}

function isNewerOf(part: Part, other: Part): boolean {
  if ('toolResponse' in part && 'toolResponse' in other) {
    const isSame = requestKey(part.toolResponse) === requestKey(other.toolResponse);
    return isSame && other.metadata?.partial === true;
  }
  if ('toolRequest' in part && 'toolRequest' in other) {
    const isSame = requestKey(part.toolRequest) === requestKey(other.toolRequest);
    return isSame && part.toolRequest.ref !== undefined;
  }
  return false;
}

/**
 * The part of a stopped answer that is kept: its text, media and data. Unfinished reasoning has no signature, and an unfinished
 * tool request was never run: providers reject or ignore both when they are sent back. The same holds for a provider's
 * data on an unfinished part.
 */
export class PartialAnswer {
  // Joined when they are read: most answers are never stopped.
  #pieces: Part[] = [];

  /** The content so far. */
  get content(): Part[] {
    const content: Part[] = [];
    for (const piece of this.#pieces) {
      const part = 'text' in piece ? withoutProviderMetadata(piece) : piece;
      const isEmpty = 'text' in part && part.text === '';
      if (!joinText(content, part) && !isEmpty) content.push(part);
    }
    return content;
  }

  add(part: Part): void {
    const isKept =
      'text' in part || 'data' in part || ('media' in part && part.metadata?.reasoning !== true);
    if (isKept) this.#pieces.push(part);
  }

  clear(): void {
    this.#pieces = [];
  }
}
