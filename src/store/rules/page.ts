import { WaymarkError } from '../../core/error.ts';
import type { Page } from '../../protocol/session.ts';
import type { ListOptions } from '../contract/store.ts';

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
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  const from =
    after === undefined ? 0 : sorted.findIndex((item) => compare(keyOf(item), after) > 0);
  if (from < 0) return { items: [] };
  const items = sorted.slice(from, from + limit);
  const last = items.at(-1);
  if (last === undefined || from + limit >= sorted.length) return { items };
  return { items, next: JSON.stringify(keyOf(last)) };
}

/** Refuses a number of items that is none. */
export function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1) return;
  throw new WaymarkError('INVALID_ARGUMENT', `The limit ${limit} is not a positive whole number.`);
}

function compare([a, textA]: Key, [b, textB]: Key): number {
  if (a !== b) return a - b;
  return textA === textB ? 0 : textA < textB ? -1 : 1;
}

function parseCursor(cursor: string): Key {
  try {
    const key: unknown = JSON.parse(cursor);
    if (Array.isArray(key) && Number.isFinite(key[0]) && typeof key[1] === 'string') {
      return [key[0], key[1]];
    }
  } catch {
    // Falls through: it is no cursor of ours.
  }
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The cursor is not one that a list of this store gave. Start again without one.',
  );
}
