/**
 * The rows of a run are in one table, told apart by `attempt`: events under their own, which begin with 1, steps, the
 * inbox and the mark of the end under numbers that no attempt has.
 */
export const journal = { inbox: -2, steps: -1, end: 2 ** 31 - 1 } as const;

/** The condition that a row is of use only while its run is open. */
export const isOfOpenRun = 'attempt < 0';

/** The condition that a row holds events. */
export const isEvent = `attempt > 0 AND attempt < ${journal.end}`;

/**
 * The condition that a run has an event with this number, or a later one. Its rows are in the order of their numbers, so
 * that only the last one is read, however long the run is.
 */
export function hasEvent(run: string, attempt: string, seq: string): string {
  return `EXISTS (SELECT 1 FROM (
    SELECT attempt, last FROM @journal WHERE run = ${run} AND ${isEvent} ORDER BY attempt DESC, seq DESC LIMIT 1) AS newest
    WHERE newest.attempt > ${attempt} OR (newest.attempt = ${attempt} AND newest.last >= ${seq}))`;
}

/** 1 if a row of runs has an inbox, else 0. */
export function isSteered(alias: string): string {
  return `CASE WHEN EXISTS (SELECT 1 FROM @journal i WHERE i.run = ${alias}.id AND i.attempt = ${journal.inbox})
    THEN 1 ELSE 0 END`;
}

/** The run that a row belongs to. */
export interface JournalKey {
  readonly id: Uint8Array;
  readonly session: number;
}

/** A run with the facts about its rows here that ending it depends on. */
export interface EndingRun extends JournalKey {
  /** Steps, or an inbox. */
  readonly has_steps: number;
  readonly has_events: number;
}

/** The columns of an {@link EndingRun}, for an open run `r`. */
export const endingColumns = `
  CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id AND j.${isOfOpenRun})
    THEN 1 ELSE 0 END AS has_steps,
  CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id AND ${isEvent})
    THEN 1 ELSE 0 END AS has_events`;
