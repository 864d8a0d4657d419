import { type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { isEvent, isOfOpenRun, type JournalKey, journal } from './journal.ts';
import { leaveInbox } from './left-inbox.ts';

const deleteSteps = statement(
  'end_steps',
  `DELETE FROM @journal WHERE run = $1 AND ${isOfOpenRun}`,
);
const deleteRun = statement('end_run', 'DELETE FROM @runs WHERE session = $1');
const insertEnd = statement(
  'end_run_with_events',
  (d) => `
    INSERT INTO @journal(run, session, attempt, seq, last, body, ended_at)
    VALUES($1, $2, ${journal.end}, 0, 0, '[]', ${d.now})`,
);

/** What ending a run has to know of it. */
export interface EndingRun extends JournalKey {
  /** Steps, or an inbox. */
  readonly has_steps: number;
  readonly has_events: number;
}

/** The columns of an open run `r` that ending it has to know. */
export const endingColumns = `
  CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id AND j.${isOfOpenRun})
    THEN 1 ELSE 0 END AS has_steps,
  CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id AND ${isEvent})
    THEN 1 ELSE 0 END AS has_events`;

/**
 * Forgets a run and what belongs to it alone. Its events are kept for a while, and, for the session's next run, the messages that it has
 * not taken if it keeps its inbox.
 */
export function* endRun(
  { id, session, has_steps, has_events }: EndingRun,
  { cipher }: StateContext,
  taken = 0,
): Plan<void> {
  if (has_steps === 1 || taken > 0) yield* leaveInbox(session, taken, cipher);
  if (has_steps === 1) yield* run(deleteSteps, id);
  yield* run(deleteRun, session);
  if (has_events === 1) yield* run(insertEnd, id, session);
}

/** The run after these events were appended to it. */
export function withEvents<Run extends EndingRun>(held: Run, events: readonly unknown[] = []): Run {
  return events.length === 0 ? held : { ...held, has_events: 1 };
}
