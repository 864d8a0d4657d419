import { canonicalJson, type Json } from '../core/json/json.ts';
import type { Message, Role } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import { contentOf, expandMessage, type Link, linkAfter, OwnLink } from './compact-history.ts';
import { History, type HistoryPiece } from './history.ts';
import { emptyState, type SessionState } from './session-state.ts';

/** Keeps messages elsewhere than in objects. */
export interface MessagePool {
  /** Takes a message, and says where it is; `undefined` for one that is better kept as it is. */
  add(content: string | Message): number | undefined;
  /** What was taken; each time another object. */
  read(place: number): string | Message;
}

/** A link whose message lies in a pool. */
class PooledLink implements Link {
  readonly before: Link | undefined;
  readonly role: Role;
  readonly #pool: MessagePool;
  readonly #place: number;
  #content: string | Message | undefined;

  constructor(before: Link | undefined, role: Role, pool: MessagePool, place: number) {
    this.before = before;
    this.role = role;
    this.#pool = pool;
    this.#place = place;
  }

  get content(): string | Message {
    return this.#content ?? this.#pool.read(this.#place);
  }

  set content(content: string | Message) {
    this.#content = content;
  }
}

/**
 * A history that stays at rest while it is extended, cut and compared: for those who have many in memory and read few of their
 * messages, like a copy for maintenance.
 */
export class RestingHistory extends History {
  /** A history without messages, from which others at rest are made. */
  static override readonly empty: RestingHistory = new RestingHistory(0, undefined);

  readonly #pool: MessagePool | undefined;

  constructor(length: number, end: Link | undefined, pool?: MessagePool) {
    super(length, undefined, end);
    this.#pool = pool;
  }

  /** A history without messages; those of all that are made from it are in a pool. */
  static in(pool: MessagePool): RestingHistory {
    return new RestingHistory(0, undefined, pool);
  }

  /** A state without artifacts that has this history: less in memory than the two by themselves. */
  stateWith(custom: Json | undefined): SessionState {
    return new RestingState(custom, this.length, this.end, this.#pool);
  }

  #linkAfter(before: Link | undefined, messages: readonly Message[]): Link | undefined {
    const pool = this.#pool;
    if (pool === undefined) return linkAfter(before, messages);
    let end = before;
    for (const message of messages) {
      const { role } = message;
      const content = contentOf(message);
      const place = pool.add(content);
      end =
        place === undefined
          ? new OwnLink(end, role, content)
          : new PooledLink(end, role, pool, place);
    }
    return end;
  }

  #with(length: number, end: Link | undefined): RestingHistory {
    return new RestingHistory(length, end, this.#pool);
  }

  override append(messages: readonly Message[]): RestingHistory {
    if (messages.length === 0) return this;
    return this.#with(this.length + messages.length, this.#linkAfter(this.end, messages));
  }

  override truncate(length: number): RestingHistory {
    return length >= this.length
      ? this
      : this.#with(length, linkBefore(this.end, this.length - length));
  }

  /** Messages that are kept elsewhere than at the beginning are the same objects in both, as they are when they are awake. */
  override rebuild(pieces: readonly HistoryPiece[]): RestingHistory {
    const own = linksTo(this.end);
    let end: Link | undefined;
    let length = 0;
    for (const piece of pieces) {
      if (piece.kind === 'new') {
        end = this.#linkAfter(end, piece.messages);
        length += piece.messages.length;
        continue;
      }
      for (const link of own.slice(piece.from, piece.to)) {
        if (link.before !== end) link.content = expandMessage(link);
        end = link.before === end ? link : new OwnLink(end, link.role, link.content);
        length++;
      }
    }
    return this.#with(length, end);
  }

  override commonLength(other: History): number {
    if (!(other instanceof RestingHistory)) return super.commonLength(other);
    let common = Math.min(this.length, other.length);
    let own = linkBefore(this.end, this.length - common);
    let its = linkBefore(other.end, other.length - common);
    for (let place = common - 1; own !== its && own && its; place--) {
      if (!isSame(own, its)) common = place;
      [own, its] = [own.before, its.before];
    }
    return common;
  }

  override isPrefixOf(other: History): boolean {
    if (!(other instanceof RestingHistory)) return super.isPrefixOf(other);
    if (other.length < this.length) return false;
    let own = this.end;
    let its = linkBefore(other.end, other.length - this.length);
    while (own !== its && own && its) {
      if (!isSame(own, its)) return false;
      [own, its] = [own.before, its.before];
    }
    return true;
  }
}

/** A state that makes its history when it is asked for it. */
class RestingState implements SessionState {
  readonly custom: Json | undefined;
  readonly #length: number;
  readonly #end: Link | undefined;
  readonly #pool: MessagePool | undefined;

  constructor(
    custom: Json | undefined,
    length: number,
    end: Link | undefined,
    pool: MessagePool | undefined,
  ) {
    this.custom = custom;
    this.#length = length;
    this.#end = end;
    this.#pool = pool;
  }

  get history(): RestingHistory {
    return new RestingHistory(this.#length, this.#end, this.#pool);
  }

  get artifacts(): readonly Artifact[] {
    return emptyState.artifacts;
  }
}

/** So many messages before the last one. */
function linkBefore(end: Link | undefined, count: number): Link | undefined {
  let link = end;
  for (let left = count; left > 0; left--) link = link?.before;
  return link;
}

function linksTo(end: Link | undefined): Link[] {
  const links: Link[] = [];
  for (let link = end; link !== undefined; link = link.before) links.push(link);
  return links.reverse();
}

function isSame(a: Link, b: Link): boolean {
  if (a.role !== b.role) return false;
  const [its, other] = [a.content, b.content];
  if (its === other) return true;
  if (typeof its === 'string' && typeof other === 'string') return false;
  return canonicalJson(expandMessage(a)) === canonicalJson(expandMessage(b));
}
