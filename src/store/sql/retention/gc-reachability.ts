import { all, first, type Plan, run, statement } from '../database/query.ts';
import { fromStored, messageRowId, rowsPerBranch } from '../history/segments.ts';

const selectBranch = statement<{
  session: number;
  parent: number | null;
  fork: number | null;
  fork_view: number | null;
  fork_snapshot: number | null;
}>(
  'need_branch',
  (d) => `
    SELECT b.session, b.parent, b.fork, b.fork_view, b.fork_snapshot FROM @branches b
    WHERE b.row_id = $1 ${d.lock('b')}`,
);
const lockSession = statement(
  'need_session',
  (d) => `SELECT z.row_id FROM @sessions z WHERE z.row_id = $1 ${d.lock('z')}`,
);
const selectUses = statement<{ view: number | null; branch_length: number; by_snapshot: number }>(
  'need_uses',
  `SELECT s.view, MAX(s.branch_length) AS branch_length, 1 AS by_snapshot FROM @snapshots s
   WHERE s.session = $2 AND s.branch = $1 GROUP BY s.view
   UNION ALL
   SELECT c.fork_view, MAX(c.fork), 0 FROM @branches c WHERE c.parent = $1 AND c.fork IS NOT NULL
   GROUP BY c.fork_view`,
);
const selectViews = statement<{ row_id: number; branch: number; own_from: number; base: string }>(
  'need_views',
  `SELECT v.row_id, v.branch, v.own_from, v.base FROM @views v WHERE v.branch = $1
   UNION ALL
   SELECT v.row_id, v.branch, v.own_from, v.base FROM @view_refs x
   JOIN @views v ON v.branch = x.view_branch AND v.row_id = x.view
   WHERE x.branch = $1`,
);
type Range = readonly [number, number];

/** What is needed of a branch. */
export interface Reachability {
  readonly parent: number | null;
  readonly fork: number | null;
  readonly forkView: number | null;
  readonly forkSnapshot: number | null;
  /** Rows that some state holds. */
  readonly ranges: readonly Range[];
  /** Some state holds what stands before its rows on the parent. */
  readonly needsParent: boolean;
  /** A snapshot lies on it. */
  readonly hasSnapshots: boolean;
  /** Views of it that some state is under, and that none is. */
  readonly usedViews: readonly number[];
  readonly unusedViews: readonly number[];
}

/** Works out what is needed of a branch, and holds it until the transaction ends. */
export function* reachabilityOf(branch: number): Plan<Reachability | undefined> {
  const row = yield* first(selectBranch, branch);
  if (row === undefined) return undefined;
  // A writer of the branch holds the lock of its session.
  yield* run(lockSession, row.session);
  const uses = new Map<number | null, number>();
  let hasSnapshots = false;
  for (const use of yield* all(selectUses, branch, row.session)) {
    uses.set(use.view, Math.max(use.branch_length, uses.get(use.view) ?? 0));
    hasSnapshots ||= use.by_snapshot === 1;
  }
  const ranges: Range[] = [];
  const byDefault = uses.get(null);
  if (byDefault !== undefined) ranges.push([0, byDefault]);
  const usedViews: number[] = [];
  const unusedViews: number[] = [];
  for (const view of yield* all(selectViews, branch)) {
    const to = view.branch === branch ? uses.get(view.row_id) : undefined;
    if (view.branch === branch) (to === undefined ? unusedViews : usedViews).push(view.row_id);
    if (to !== undefined) ranges.push([view.own_from, to]);
    if (to !== undefined || view.branch !== branch) {
      ranges.push(...rangesOn(branch, fromStored(view.base, view.branch)));
    }
  }
  return {
    parent: row.parent,
    fork: row.fork,
    forkView: row.fork_view,
    forkSnapshot: row.fork_snapshot,
    ranges: ranges.filter(([from, to]) => to > from),
    needsParent: byDefault !== undefined,
    hasSnapshots,
    usedViews,
    unusedViews,
  };
}

function rangesOn(branch: number, segments: readonly Range[]): Range[] {
  const start = messageRowId(branch, 0);
  return segments
    .filter(([from]) => from >= start && from < start + rowsPerBranch)
    .map(([from, to]) => [from - start, to - start]);
}
