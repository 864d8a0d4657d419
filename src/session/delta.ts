import type { Message } from '../protocol/message.ts';
import type { History, HistoryPiece } from './history.ts';

/** How a history came out of the one before: by appending, or in pieces after a trim or an edit. */
export type HistoryDelta =
  | { readonly kind: 'append'; readonly messages: readonly Message[] }
  | { readonly kind: 'rewrite'; readonly pieces: readonly HistoryPiece[] };

/**
 * What is new in `next`. Appending, the usual case, costs what was appended. Otherwise the common beginning comes first, as
 * one range, and behind it messages of the base are recognised by identity, so that a window sliding over the history is a
 * few ranges and not a copy.
 */
export function historyDelta(base: History | undefined, next: History): HistoryDelta {
  if (base === undefined) return { kind: 'append', messages: next.toArray() };
  if (base.isPrefixOf(next)) {
    return { kind: 'append', messages: next.slice(base.length, next.length) };
  }
  return { kind: 'rewrite', pieces: pieces(base, next) };
}

type GrowingPiece =
  | { readonly kind: 'kept'; readonly from: number; to: number }
  | { readonly kind: 'new'; readonly messages: Message[] };

function pieces(base: History, next: History): readonly HistoryPiece[] {
  const common = base.commonLength(next);
  const left = base.slice(common, base.length);
  const places = new Map(left.map((message, place) => [message, common + place]));
  const found: GrowingPiece[] = common === 0 ? [] : [{ kind: 'kept', from: 0, to: common }];
  for (const message of next.slice(common, next.length)) {
    const last = found.at(-1);
    const place = places.get(message);
    // Extending a range comes first: a message may stand in the base more than once.
    if (last?.kind === 'kept' && left[last.to - common] === message) last.to++;
    else if (place !== undefined) found.push({ kind: 'kept', from: place, to: place + 1 });
    else if (last?.kind === 'new') last.messages.push(message);
    else found.push({ kind: 'new', messages: [message] });
  }
  return found;
}
