import { type Plan, run, statement } from './query.ts';

const deleteSteps = statement('end_steps', 'DELETE FROM @steps WHERE run = $1');
const deleteRun = statement('end_run', 'DELETE FROM @runs WHERE session = $1');
const insertEnded = statement(
  'end_run_with_events',
  (d) => `INSERT INTO @ended_runs(id, session, ended_at) VALUES($1, $2, ${d.now})`,
);

/** What ending a run has to know of it. */
export interface EndingRun {
  readonly id: Uint8Array;
  readonly session: number;
  readonly has_steps: number;
  readonly has_events: number;
}

/** The columns of an open run `r` that ending it has to know. */
export const endingColumns = `
  CASE WHEN EXISTS (SELECT 1 FROM @steps t WHERE t.run = r.id) THEN 1 ELSE 0 END AS has_steps,
  CASE WHEN EXISTS (SELECT 1 FROM @events e WHERE e.run = r.id) THEN 1 ELSE 0 END AS has_events`;

/** Forgets a run and what belongs to it alone. Its events are kept for a while. */
export function* endRun({ id, session, has_steps, has_events }: EndingRun): Plan<void> {
  if (has_steps === 1) yield* run(deleteSteps, id);
  yield* run(deleteRun, session);
  if (has_events === 1) yield* run(insertEnded, id, session);
}

/** The run after these events were appended to it. */
export function withEvents<Run extends EndingRun>(held: Run, events: readonly unknown[] = []): Run {
  return events.length === 0 ? held : { ...held, has_events: 1 };
}
