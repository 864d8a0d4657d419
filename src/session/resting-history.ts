import { canonicalJson } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { expandMessage, Link, linkAfter } from './compact-history.ts';
import { History, type HistoryPiece } from './history.ts';

/**
 * A history that stays at rest while it is extended, cut and compared: for those who have many in memory and read few of their
 * messages, like a copy for maintenance.
 */
export class RestingHistory extends History {
  /** A history without messages, from which others at rest are made. */
  static override readonly empty: RestingHistory = new RestingHistory(0, undefined);

  private constructor(length: number, end: Link | undefined) {
    super(length, undefined, end);
  }

  override append(messages: readonly Message[]): RestingHistory {
    if (messages.length === 0) return this;
    return new RestingHistory(this.length + messages.length, linkAfter(this.end, messages));
  }

  override truncate(length: number): RestingHistory {
    return length >= this.length
      ? this
      : new RestingHistory(length, linkBefore(this.end, this.length - length));
  }

  /** Messages that are kept elsewhere than at the beginning are the same objects in both, as they are when they are awake. */
  override rebuild(pieces: readonly HistoryPiece[]): RestingHistory {
    const own = linksTo(this.end);
    let end: Link | undefined;
    let length = 0;
    for (const piece of pieces) {
      if (piece.kind === 'new') {
        end = linkAfter(end, piece.messages);
        length += piece.messages.length;
        continue;
      }
      for (const link of own.slice(piece.from, piece.to)) {
        if (link.before !== end) link.content = expandMessage(link);
        end = link.before === end ? link : new Link(end, link.role, link.content);
        length++;
      }
    }
    return new RestingHistory(length, end);
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
  if (a.content === b.content) return true;
  if (typeof a.content === 'string' && typeof b.content === 'string') return false;
  return canonicalJson(expandMessage(a)) === canonicalJson(expandMessage(b));
}
