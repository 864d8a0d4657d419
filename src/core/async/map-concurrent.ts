/** Maps items by an async function that runs for at most `limit` of them at a time; results are in the order of the items. */
export async function mapConcurrent<Item, Result>(
  items: readonly Item[],
  limit: number,
  fn: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  if (items.length <= limit) return await Promise.all(items.map(fn));
  const results: Result[] = [];
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await fn(item, index);
  };
  await Promise.all(Array.from({ length: limit }, work));
  return results;
}
