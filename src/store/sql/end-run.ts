import { first, type Plan, run, statement } from './query.ts';

const deleteSteps = statement('end_steps', 'DELETE FROM @steps WHERE run = $1');
const deleteRun = statement<{ no: number }>(
  'end_run',
  `DELETE FROM @runs WHERE no = $1 AND NOT EXISTS (SELECT 1 FROM @events WHERE run = $1)
   RETURNING no`,
);
const closeRun = statement(
  'end_run_with_events',
  (d) => `UPDATE @runs SET ended_at = ${d.now}, request = 'null', checkpoint = NULL WHERE no = $1`,
);

/** Forgets a run and what belongs to it alone. While its events are kept its row is, without the inputs. */
export function* endRun(no: number): Plan<void> {
  yield* run(deleteSteps, no);
  if ((yield* first(deleteRun, no)) === undefined) yield* run(closeRun, no);
}
