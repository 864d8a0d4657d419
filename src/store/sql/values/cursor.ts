import { invalid } from '../../rules/errors.ts';

/** The place of the last item of a page: a number, and a text where numbers may be equal. */
export type Key = readonly [number, string];

/** A cursor as it leaves the store. */
export function toCursor(key: Key): string {
  return JSON.stringify(key);
}

/** A cursor that came back. */
export function fromCursor(cursor: string | undefined): Key | undefined {
  if (cursor === undefined) return undefined;
  try {
    const key: unknown = JSON.parse(cursor);
    if (Array.isArray(key) && Number.isSafeInteger(key[0]) && typeof key[1] === 'string') {
      return [key[0], key[1]];
    }
  } catch {
    // Falls through: it is no cursor of ours.
  }
  throw invalid('The cursor is not one that a list of this store gave. Start again without one.');
}

/** A page size that can be meant. */
export function checkLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1) return limit;
  throw invalid(`The limit ${limit} is not a positive whole number.`);
}
