import { one, type Plan, statement } from '../database/query.ts';
import { lineageTable } from '../history/lineage.ts';

const selectActive = statement<{ active: number }>(
  'is_active',
  (d) => `
    WITH RECURSIVE ${lineageTable(d, 'active', '@sessions z JOIN @snapshots l ON l.row_id = z.head AND z.row_id = $1')}
    SELECT COUNT(*) AS active FROM @snapshots s JOIN active a ON a.row_id = s.branch AND s.row_id <= a.lim
    WHERE s.row_id = $2`,
);
/** Lists the head of a session that was saved without being listed, under the session's next index, which the caller counts on. */
export const listHead = statement(
  'list_head',
  `UPDATE @snapshots SET idx = (SELECT next_index FROM @sessions WHERE row_id = $1)
   WHERE row_id = (SELECT head FROM @sessions WHERE row_id = $1) AND idx IS NULL`,
);

/** Counts a snapshot that was listed under a session's next index. */
export const countIndex = statement(
  'count_index',
  'UPDATE @sessions SET next_index = next_index + 1 WHERE row_id = $1',
);

/** Whether a snapshot is on the path from its session's head to the root. */
export function* isOnActivePath(session: number, snapshot: number): Plan<boolean> {
  return (yield* one(selectActive, session, snapshot)).active > 0;
}
