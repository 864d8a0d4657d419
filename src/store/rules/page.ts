import { invalid } from '../../core/error.ts';
import type { Page } from '../../protocol/session.ts';
import type { ListOptions } from '../contract/store.ts';

/** The place of the last item of a page: a number, and a text where numbers may be equal. */
type Key = readonly [number, string];

/**
 * One page of a sorted list. The cursor is the key of the last item, so that items added or removed between two pages neither
 * repeats nor hides another item.
 */
export function pageOf<Item>(
  sorted: readonly Item[],
  keyOf: (item: Item) => Key,
  { limit = 50, cursor }: ListOptions,
): Page<Item> {
  checkLimit(limit);
  const after = parseCursor(cursor);
  const from =
    after === undefined ? 0 : sorted.findIndex((item) => compare(keyOf(item), after) > 0);
  return from < 0 ? { items: [] } : firstPage(sorted.slice(from, from + limit + 1), keyOf, limit);
}

/** A page of items, of which there is at least one more than fits on it if another page follows. */
export function firstPage<Item>(
  found: readonly Item[],
  keyOf: (item: Item) => Key,
  limit: number,
): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || found.length <= limit) return { items };
  return { items, next: JSON.stringify(keyOf(last)) };
}

export function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1) return;
  throw invalid(`The limit ${limit} is not a positive whole number.`);
}

function compare([a, textA]: Key, [b, textB]: Key): number {
  if (a !== b) return a - b;
  return textA === textB ? 0 : textA < textB ? -1 : 1;
}

export function parseCursor(cursor: string | undefined): Key | undefined {
  if (cursor === undefined) return undefined;
  try {
    const key: unknown = JSON.parse(cursor);
    if (Array.isArray(key) && Number.isSafeInteger(key[0]) && typeof key[1] === 'string') {
      return [key[0], key[1]];
    }
  } catch {
    // Falls through: it is no cursor of ours.
  }
  throw invalid('Invalid cursor. Start again without one.');
}
