import { type Plan, run, statement } from '../database/query.ts';

const updateParent = statement(
  'run_hang_on_start',
  `UPDATE @snapshots SET parent = (
     SELECT CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END FROM @snapshots g WHERE g.row_id = $2)
   WHERE row_id = $1`,
);

/**
 * A detached run that comes to nothing: its snapshot hangs on what the run was claimed from, not on a snapshot within its
 * turn, which nothing continues from.
 */
export function* hangOnStart({
  own_snapshot: own,
  start,
  base,
}: {
  readonly own_snapshot: number | null;
  readonly start: number | null;
  readonly base: number | null;
}): Plan<void> {
  if (own !== null && base !== start) yield* run(updateParent, own, start);
}
