/**
 * Does things in groups: what is asked for while a group is on its way makes the next one. So who comes alone does not wait,
 * and the more there is to do the larger the groups are. `work` gives a result for each item, in their order.
 */
export function inGroups<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly Result[]>,
  most: number,
): (item: Item) => Promise<Result> {
  let waiting: { readonly item: Item; readonly result: PromiseWithResolvers<Result> }[] = [];
  let isWorking = false;

  const run = async (): Promise<void> => {
    isWorking = true;
    while (waiting.length > 0) {
      const group = waiting.slice(0, most);
      waiting = waiting.slice(most);
      try {
        const results = await work(group.map(({ item }) => item));
        for (const [n, { result }] of group.entries()) result.resolve(results[n] as Result);
      } catch (error) {
        for (const { result } of group) result.reject(error);
      }
    }
    isWorking = false;
  };

  return (item) => {
    const result = Promise.withResolvers<Result>();
    waiting.push({ item, result });
    if (!isWorking) void run();
    return result.promise;
  };
}
