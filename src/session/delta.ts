import type { Message } from '../protocol/message.ts';
import type { History } from './history.ts';

/** A stretch of a new history: messages that the base has at these places, or messages that are new. */
export type HistoryPiece =
  | { readonly kind: 'kept'; readonly from: number; readonly to: number }
  | { readonly kind: 'new'; readonly messages: readonly Message[] };

/** How a history came out of the one before: by appending, or in pieces after a trim or an edit. */
export type HistoryDelta =
  | { readonly kind: 'append'; readonly messages: readonly Message[] }
  | { readonly kind: 'rewrite'; readonly pieces: readonly HistoryPiece[] };

/**
 * What is new in `next`. Appending, the usual case, costs what was appended. Otherwise messages of the base are recognised
 * by identity, so that a window sliding over the history is a few ranges and not a copy.
 */
export function historyDelta(base: History | undefined, next: History): HistoryDelta {
  if (base === undefined) return { kind: 'append', messages: next.toArray() };
  if (base.isPrefixOf(next)) return { kind: 'append', messages: next.toArray(base.length) };
  return { kind: 'rewrite', pieces: pieces(base, next) };
}

function pieces(base: History, next: History): HistoryPiece[] {
  const places = new Map<Message, number>();
  base.toArray().forEach((message, place) => {
    places.set(message, place);
  });
  const found: HistoryPiece[] = [];
  let kept: { kind: 'kept'; from: number; to: number } | undefined;
  let fresh: { kind: 'new'; messages: Message[] } | undefined;
  for (const message of next.toArray()) {
    const place = places.get(message);
    if (place === undefined) {
      kept = undefined;
      if (fresh === undefined) {
        fresh = { kind: 'new', messages: [] };
        found.push(fresh);
      }
      fresh.messages.push(message);
    } else if (kept?.to === place) {
      kept.to = place + 1;
    } else {
      fresh = undefined;
      kept = { kind: 'kept', from: place, to: place + 1 };
      found.push(kept);
    }
  }
  return found;
}
