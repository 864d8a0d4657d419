import type { EventId } from '../../api/types.ts';
import { WaymarkError } from '../../core/error.ts';
import { parseEventId } from '../../protocol/ids.ts';
import { checkMessagePage, type MessageOptions } from '../../protocol/message-page.ts';
import { short } from '../http/not-found.ts';
import type { RequestContext } from '../http/server-context.ts';

/** The longest page that can be asked for. */
const maxItems = 200;

/** How many messages a page has when only `before` is given. */
const usualPage = 50;

/** `limit` and `cursor` of a list. */
export function pageQuery(c: RequestContext): {
  readonly limit?: number;
  readonly cursor?: string;
} {
  const limit = c.req.query('limit');
  const cursor = c.req.query('cursor');
  return {
    ...(limit !== undefined && { limit: parseLimit(limit) }),
    ...(cursor !== undefined && { cursor }),
  };
}

/** `last` and `before` of a page of messages. */
export function messageQuery(c: RequestContext): MessageOptions {
  const last = c.req.query('last');
  const before = c.req.query('before');
  if (last === undefined && before === undefined) return {};
  const messages = {
    last: wholeNumber(last ?? String(usualPage)),
    ...(before !== undefined && { before: wholeNumber(before) }),
  };
  checkMessagePage(messages);
  return { messages };
}

// Anything but digits is no number that a page could have; the check says what it should be.
function wholeNumber(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** A flag of the query: there, `true` or `1` is yes; absent, `false` or `0` is no. */
export function flagQuery(c: RequestContext, name: string): boolean {
  const value = c.req.query(name);
  switch (value) {
    case undefined:
    case 'false':
    case '0':
      return false;
    case '':
    case 'true':
    case '1':
      return true;
    default:
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `${name} must be true or false, not ${short(value)}.`,
      );
  }
}

/** The event to continue after, from the header that browsers set or from `?after=`. */
export function lastEventId(c: RequestContext): EventId | undefined {
  const id = c.req.header('last-event-id') ?? c.req.query('after');
  // A browser that has seen no event may send an empty header.
  if (id === undefined || id === '') return undefined;
  parseEventId(id);
  return id;
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxItems) return limit;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `limit must be a whole number from 1 to ${maxItems}, not ${short(text)}.`,
  );
}
