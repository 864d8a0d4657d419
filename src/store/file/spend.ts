import type { SpendFilter, SpendSupport } from '../contract/store.ts';
import { spendSupport as memorySpend, SpendCounters } from '../memory/spend.ts';
import type { Tables } from '../memory/tables.ts';
import type { DirectoryTransaction } from './directory/transaction.ts';
import type { SpendFiles } from './spend-files.ts';

/** What was spent, by the files. */
export function spendSupport(
  files: SpendFiles,
  tables: Tables,
  transaction: DirectoryTransaction,
): SpendSupport {
  const reading = <Result>(
    filter: SpendFilter,
    read: (support: SpendSupport) => Promise<Result>,
  ): Promise<Result> => transaction.read(() => read(memorySpend(tables, files.read(filter))));
  return {
    add: (spend) =>
      transaction.write(
        () => memorySpend(tables, new SpendCounters()).add(spend),
        () => files.save(),
      ),
    reserve: (reservation) =>
      transaction.write(
        () => {
          const { owner = null } = reservation;
          return memorySpend(tables, files.read({ owner })).reserve?.(reservation);
        },
        () => files.save(),
      ),
    total: (filter) => reading(filter, (support) => support.total(filter)),
    sums: (by, filter) => reading(filter, (support) => support.sums(by, filter)),
  };
}
