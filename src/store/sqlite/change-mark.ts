import { isSnapshotId } from '../../protocol/ids.ts';
import type { Hint } from '../sql/database/database.ts';
import { one, type Plan, statement } from '../sql/database/query.ts';
import { journal } from '../sql/runs/journal.ts';
import { uuidBytes } from '../sql/values/bytes.ts';

interface MarkRow {
  readonly mark: string;
}

// All that others may do to a run, or that may become of it, except that its worker is alive.
const selectRun = statement<MarkRow>(
  'change_run',
  `SELECT COALESCE((SELECT attempt || ' ' || mode || ' ' || stopping || ' ' || ttl FROM @runs WHERE id = $1), '')
     || '/' || COALESCE((SELECT status || ' ' || updated_at FROM @snapshots WHERE id = $1), '')
     || '/' || (SELECT COUNT(*) FROM @journal WHERE run = $1 AND attempt = ${journal.inbox}) AS mark`,
);
// Rows are only added at the end, until all of them go.
const selectEvents = statement<MarkRow>(
  'change_events',
  `SELECT COALESCE((SELECT attempt FROM @runs WHERE id = $1), '') || '/' || COALESCE((
     SELECT attempt || ' ' || seq FROM @journal WHERE run = $1 ORDER BY attempt DESC, seq DESC LIMIT 1), '')
   AS mark`,
);

/** A text that changes when what a hint is about does; `undefined` for a hint that is about no single run. */
export function* changeMark({ kind, id }: Hint): Plan<string | undefined> {
  if (!isSnapshotId(id)) return undefined;
  const { mark } = yield* one(kind === 'run' ? selectRun : selectEvents, uuidBytes(id));
  return mark;
}
