import { defaultFilter } from 'cmdk';

/** A weaker match shares only scattered letters. */
const minScore = 0.1;

/** The items whose text matches what was typed, the best first; all of them when nothing was. */
export function rank<Item>(
  items: readonly Item[],
  query: string,
  textOf: (item: Item) => string,
): readonly Item[] {
  if (query === '') return items;
  return items
    .map((item) => ({ item, score: defaultFilter(textOf(item), query) }))
    .filter(({ score }) => score >= minScore)
    .sort((a, b) => b.score - a.score)
    .map(({ item }) => item);
}
