import { short } from '../http/errors.ts';
import type { RequestContext } from '../http/server-context.ts';
import { badRequest, unknownId } from './errors.ts';
import type { Item } from './items.ts';

/** A page of items, given oldest first: `order` (newest first by default), `limit` and `after` as the query says. */
export function pageOf(c: RequestContext, items: readonly Item[]): object {
  const order = c.req.query('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') {
    throw badRequest(`order must be asc or desc, not ${short(order)}.`, { param: 'order' });
  }
  const limit = limitOf(c.req.query('limit') ?? '20');
  const sorted = order === 'asc' ? items : items.toReversed();
  const after = c.req.query('after');
  const from = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw unknownId(`There is no item ${short(after)} here.`, 'item_not_found', 'after');
  }
  const data = sorted.slice(from, from + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < sorted.length,
  };
}

function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 100) return limit;
  throw badRequest(`limit must be a whole number from 1 to 100, not ${short(text)}.`, {
    param: 'limit',
  });
}
