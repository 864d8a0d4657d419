/**
 * What belongs to a run stands in one table, told apart by `attempt`: events under their own, which begin with 1, steps and
 * the mark of the end under numbers that no attempt has.
 */
export const journal = { steps: -1, end: 2 ** 31 - 1 } as const;

/** The condition that a row holds events. */
export const isEvent = `attempt > 0 AND attempt < ${journal.end}`;

/** The run that a row belongs to. */
export interface JournalKey {
  readonly id: Uint8Array;
  readonly session: number;
}
