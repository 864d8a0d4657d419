import { sha256 } from '../core/hash.ts';
import { canonicalJson } from '../core/json.ts';
import type { Message } from '../protocol/message.ts';

/** Shared by all versions of one line of history; only ever appended to. */
interface Log {
  readonly messages: Message[];
  /** `chains[i]` is the chain over the first i + 1 messages; worked out when somebody asks. */
  readonly chains: string[];
}

/** The chain of an empty history. */
const emptyChain = '';

/**
 * SHA-256 over the canonical form of one message. `metadata.snapshotId` is put on when a state is read; it is not content
 * and {@link History} never holds it.
 */
export function messageHash(message: Message): string {
  return sha256(canonicalJson(message));
}

/**
 * One version of a conversation: a shared append-only log and a length. Appending to the newest version costs what is
 * appended; older versions stay as they are. An array is made only when somebody reads {@link History.messages}, because
 * copying or freezing the whole history each turn is what makes a turn slower the longer the conversation is.
 */
export class History {
  static readonly empty: History = new History({ messages: [], chains: [] }, 0);

  readonly length: number;
  readonly #log: Log;
  #frozen: readonly Message[] | undefined;

  private constructor(log: Log, length: number) {
    this.#log = log;
    this.length = length;
  }

  /** A history of these (deeply frozen) messages. */
  static of(messages: readonly Message[]): History {
    return History.empty.append(messages);
  }

  /** The message at a place. */
  at(index: number): Message | undefined {
    const place = index < 0 ? this.length + index : index;
    return place < this.length ? this.#log.messages[place] : undefined;
  }

  /** The messages as a frozen array; made once per version. */
  get messages(): readonly Message[] {
    this.#frozen ??= Object.freeze(this.toArray());
    return this.#frozen;
  }

  /** A plain array of the messages from `from` on, the caller's own. Copying a plain array is much cheaper than a frozen one. */
  toArray(from = 0): Message[] {
    return this.#log.messages.slice(from, this.length);
  }

  /** This history with (deeply frozen) messages behind it. */
  append(messages: readonly Message[]): History {
    if (messages.length === 0) return this;
    const log = this.#log;
    const isNewest = log.messages.length === this.length && this.length > 0;
    const target = isNewest
      ? log
      : { messages: this.toArray(), chains: log.chains.slice(0, this.length) };
    for (const message of messages) target.messages.push(message);
    return new History(target, target.messages.length);
  }

  /** The first `length` messages. */
  truncate(length: number): History {
    return length >= this.length ? this : new History(this.#log, length);
  }

  /** This history replaced by other messages; what it has in common with them at the start stays shared. */
  replace(messages: readonly Message[]): History {
    const own = this.#log.messages;
    const most = Math.min(this.length, messages.length);
    let common = 0;
    while (common < most && own[common] === messages[common]) common++;
    if (common === 0) return History.of(messages);
    return this.truncate(common).append(messages.slice(common));
  }

  /** A hash over the first `length` messages, each link over the one before and the message's own hash. */
  chain(length: number = this.length): string {
    if (length === 0) return emptyChain;
    const { chains, messages } = this.#log;
    for (let i = chains.length; i < length; i++) {
      chains.push(sha256((chains[i - 1] ?? emptyChain) + messageHash(messages[i] as Message)));
    }
    return chains[length - 1] as string;
  }

  /** How many messages this history and another have in common at their beginning. The chains tell for any length. */
  commonLength(other: History): number {
    let low = 0;
    let high = Math.min(this.length, other.length);
    if (this.#log === other.#log) return high;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.chain(middle) === other.chain(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Whether `other` is this history or goes on from it. */
  isPrefixOf(other: History): boolean {
    if (other.length < this.length) return false;
    return other.#log === this.#log || other.chain(this.length) === this.chain();
  }
}
