import { sha256 } from '../core/json/hash.ts';
import { canonicalJson } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { plainTextOf } from '../protocol/messages.ts';
import {
  CompactMessage,
  chainOf,
  compactAfter,
  compactWithin,
  expandMessage,
  type Link,
} from './compact-history.ts';

/** Shared by all versions of one line of history; only ever appended to. */
class Log {
  readonly messages: Message[];
  /** `chains[i]` is the chain over the first i + 1 messages in hex, where it is known; computed on demand. */
  readonly chains: (string | undefined)[];
  /** The longest of its versions that was put to rest. */
  rest: CompactMessage | undefined;

  constructor(messages: Message[], chains: (string | undefined)[], rest?: CompactMessage) {
    this.messages = messages;
    this.chains = chains;
    this.rest = rest;
  }
}

/** A stretch of a new history: messages that another has at these places, or messages that are new. */
export type HistoryPiece =
  | { readonly kind: 'kept'; readonly from: number; readonly to: number }
  | { readonly kind: 'new'; readonly messages: readonly Message[] };

const emptyChain = '';

/**
 * SHA-256 over the canonical form of one message. `metadata.snapshotId` is put on when a state is read; it is not content
 * and {@link History} never holds it.
 */
export function messageHash(message: Message): string {
  const text = plainTextOf(message);
  // Nearly every message is a plain text, whose canonical form needs no sorting.
  return sha256(
    text === undefined
      ? canonicalJson(message)
      : `{"content":[{"text":${JSON.stringify(text)}}],"role":"${message.role}"}`,
  );
}

/**
 * One version of a conversation: a shared append-only log and a length. Appending to the newest version costs what is
 * appended; older versions stay as they are. An array is created only when {@link History.messages} is read, because
 * copying or freezing the whole history each turn is what makes a turn slower the longer the conversation is.
 *
 * A store that keeps histories in memory keeps them at rest, and gives them back by {@link History.wake}.
 */
export class History {
  /** A history without messages. */
  static readonly empty: History = new History(0, new Log([], []));

  /** Number of messages. */
  readonly length: number;
  /** For a compact history: created when its messages are read. */
  #log: Log | undefined;
  /** For one that is or was compact: its last message. */
  #end: Link | undefined;
  #frozen: readonly Message[] | undefined;
  #userMessages: number | undefined;

  private constructor(length: number, log: Log | undefined, end?: Link) {
    this.length = length;
    this.#log = log;
    this.#end = end;
  }

  /** A history of these (deeply frozen) messages. */
  static of(messages: readonly Message[]): History {
    return History.empty.append(messages);
  }

  /** A compact history; costs nothing until its messages are read. */
  static wake(rest: CompactMessage | undefined): History {
    return rest === undefined ? History.empty : new History(rest.length, undefined, rest);
  }

  /** This history for a store to keep, in as little memory as possible. Costs what is new since the last time. */
  rest(): CompactMessage | undefined {
    if (this.length === 0) return undefined;
    if (this.#end instanceof CompactMessage) return this.#end;
    const log = this.#awake();
    const base = compactWithin(log.rest, this.length);
    const from = base?.length ?? 0;
    const rest =
      base !== undefined && from === this.length
        ? base
        : compactAfter(base, this.toArray(from), this.#chainOver(this.length));
    if (this.length > (log.rest?.length ?? 0)) log.rest = rest;
    this.#end = rest;
    return rest;
  }

  /**
   * The same history for readers of many: it shares a log with those in `known`, by where they ended, that it continues
   * from, and its chain is computed again. A history that is not compact is returned as it is.
   */
  wakeAmong(known: Map<Link, History>): History {
    if (this.#log !== undefined || this.#end === undefined) return this;
    const messages: Message[] = [];
    let link: Link | undefined = this.#end;
    for (; link !== undefined && !known.has(link); link = link.before) {
      messages.push(expandMessage(link));
    }
    const base = link === undefined ? History.empty : known.get(link);
    const woken = (base ?? History.empty).append(messages.reverse());
    known.set(this.#end, woken);
    return woken;
  }

  /** The message at a place. */
  at(index: number): Message | undefined {
    const place = index < 0 ? this.length + index : index;
    return place < this.length ? this.#awake().messages[place] : undefined;
  }

  /** The messages as a frozen array; made once per version. */
  get messages(): readonly Message[] {
    this.#frozen ??= Object.freeze(this.toArray());
    return this.#frozen;
  }

  /** A plain array of the messages from `from` on, the caller's own. Copying a plain array is much cheaper than a frozen one. */
  toArray(from = 0): Message[] {
    return this.#awake().messages.slice(from, this.length);
  }

  /** The messages at positions `[from, to)`. Of a compact history, only those behind `from` are read. */
  slice(from: number, to: number): Message[] {
    if (this.#log !== undefined) return this.#log.messages.slice(from, Math.min(to, this.length));
    const messages: Message[] = [];
    let link: Link | undefined = this.#end;
    for (let place = this.length - 1; link !== undefined && place >= from; place--) {
      if (place < to) messages.push(expandMessage(link));
      link = link.before;
    }
    return messages.reverse();
  }

  /** Whether these are its messages, the very same objects. */
  consistsOf(messages: readonly unknown[]): boolean {
    if (messages.length !== this.length) return false;
    const own = this.#awake().messages;
    for (let place = 0; place < this.length; place++) {
      if (messages[place] !== own[place]) return false;
    }
    return true;
  }

  /** How many of its messages are the user's. Counted once; what is appended to a counted history is counted on. */
  countUserMessages(): number {
    this.#userMessages ??= usersAmong(this.toArray());
    return this.#userMessages;
  }

  /** This history with (deeply frozen) messages behind it. */
  append(messages: readonly Message[]): History {
    if (messages.length === 0) return this;
    const log = this.#awake();
    const isNewest = log.messages.length === this.length && this.length > 0;
    const target = isNewest ? log : this.#copyLog(log);
    for (const message of messages) target.messages.push(message);
    const appended = new History(target.messages.length, target);
    if (this.#userMessages !== undefined) {
      appended.#userMessages = this.#userMessages + usersAmong(messages);
    }
    return appended;
  }

  /** The first `length` messages. */
  truncate(length: number): History {
    return length >= this.length ? this : new History(length, this.#awake());
  }

  /** This history replaced by other messages; what it has in common with them at the start stays shared. */
  replace(messages: readonly Message[]): History {
    const own = this.#awake().messages;
    const most = Math.min(this.length, messages.length);
    let common = 0;
    while (common < most && own[common] === messages[common]) common++;
    if (common === 0) return History.of(messages);
    return this.truncate(common).append(messages.slice(common));
  }

  /** A history put together from stretches of this one and new (deeply frozen) messages. */
  rebuild(pieces: readonly HistoryPiece[]): History {
    return this.replace(
      pieces.flatMap((piece) =>
        piece.kind === 'new' ? piece.messages : this.truncate(piece.to).toArray(piece.from),
      ),
    );
  }

  /** A hash over the first `length` messages, each link over the one before and the message's own hash. */
  chain(length: number = this.length): string {
    return length === 0 ? emptyChain : this.#chainOver(length);
  }

  /** The chains over these first lengths. Of a compact history, only the messages behind the shortest one are read. */
  chains(lengths: readonly number[]): ReadonlyMap<number, string> {
    const found = new Map<number, string>();
    const least = Math.min(...lengths);
    let link: Link | undefined = this.#log === undefined ? this.#end : undefined;
    for (let length = this.length; link !== undefined && length >= least; length--) {
      const chain = chainOf(link);
      if (chain !== undefined) found.set(length, chain);
      link = link.before;
    }
    return new Map(lengths.map((length) => [length, found.get(length) ?? this.chain(length)]));
  }

  /** How many messages this history and another have in common at their beginning. The chains tell for any length. */
  commonLength(other: History): number {
    let low = 0;
    let high = Math.min(this.length, other.length);
    if (this.#awake() === other.#awake()) return high;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#chainOver(middle) === other.#chainOver(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Whether `other` is this history or continues it. */
  isPrefixOf(other: History): boolean {
    if (other.length < this.length) return false;
    if (this.length === 0 || (this.#log !== undefined && other.#log === this.#log)) return true;
    return other.#chainOver(this.length) === this.#chainOver(this.length);
  }

  /** The chain over the first messages, at least one. */
  #chainOver(length: number): string {
    // One that is at rest and only compared need not be woken.
    if (this.#log === undefined && length === this.length) {
      const known = this.#end && chainOf(this.#end);
      if (known !== undefined) return known;
    }
    const { chains, messages } = this.#awake();
    let known = length;
    while (known > 0 && chains[known - 1] === undefined) known--;
    let chain = known === 0 ? emptyChain : (chains[known - 1] as string);
    for (; known < length; known++) {
      chain = sha256(chain + messageHash(messages[known] as Message));
      chains[known] = chain;
    }
    return chain;
  }

  #copyLog({ chains, rest }: Log): Log {
    return new Log(this.toArray(), chains.slice(0, this.length), compactWithin(rest, this.length));
  }

  #awake(): Log {
    this.#log ??= wakeLog(this.#end);
    return this.#log;
  }
}

function wakeLog(end: Link | undefined): Log {
  const messages: Message[] = [];
  const chains: (string | undefined)[] = [];
  for (let link = end; link !== undefined; link = link.before) {
    messages.push(expandMessage(link));
    chains.push(chainOf(link));
  }
  return new Log(messages.reverse(), chains.reverse(), compactWithin(end, messages.length));
}

function usersAmong(messages: readonly Message[]): number {
  let users = 0;
  for (const { role } of messages) if (role === 'user') users++;
  return users;
}

/** How a history came out of the one before: by appending, or in pieces after a trim or an edit. */
export type HistoryDelta =
  | { readonly kind: 'append'; readonly messages: readonly Message[] }
  | { readonly kind: 'rewrite'; readonly pieces: readonly HistoryPiece[] };

/**
 * The difference of `next`. Appending, the usual case, costs what was appended. Otherwise the common beginning comes first, as
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
