import { all, first, type Plan, run, statement } from '../database/query.ts';
import { fromStored, messageRowId, rowsPerBranch } from '../history/segments.ts';
import type { Fork } from './cuts.ts';

interface BranchRow {
  readonly session: number;
  readonly parent: number | null;
  readonly fork: number | null;
  readonly fork_view: number | null;
  readonly fork_snapshot: number | null;
}
const columns = 'b.session, b.parent, b.fork, b.fork_view, b.fork_snapshot';
const lockBranch = statement<BranchRow>(
  'need_branch',
  (d) => `SELECT ${columns} FROM @branches b WHERE b.row_id = $1 ${d.lock('b')}`,
);
const lockSession = statement(
  'need_session',
  (d) => `SELECT z.row_id FROM @sessions z WHERE z.row_id = $1 ${d.lock('z')}`,
);
const selectBranch = statement<BranchRow & { next_index: number | null }>(
  'verify_branch',
  `SELECT ${columns}, z.next_index FROM @branches b LEFT JOIN @sessions z ON z.row_id = b.session
   WHERE b.row_id = $1`,
);

/** Up to where states need a branch, under one of its views or none. */
interface Use {
  readonly view: number | null;
  readonly branch_length: number;
  readonly by_snapshot: number;
}
const usesBySnapshots = (where: string): string =>
  `SELECT s.view, MAX(s.branch_length) AS branch_length, 1 AS by_snapshot FROM @snapshots s
   WHERE s.session = $2 AND s.branch = $1 ${where} GROUP BY s.view`;
const usesByForks = `SELECT c.fork_view AS view, MAX(c.fork) AS branch_length, 0 AS by_snapshot
   FROM @branches c WHERE c.parent = $1 AND c.fork IS NOT NULL GROUP BY c.fork_view`;
const selectUses = statement<Use>('need_uses', `${usesBySnapshots('')} UNION ALL ${usesByForks}`);
const selectListedUses = statement<Use>(
  'verify_listed_uses',
  usesBySnapshots('AND s.idx >= $3 AND s.idx < $4'),
);
const selectOtherUses = statement<Use>(
  'verify_other_uses',
  `${usesBySnapshots('AND s.idx IS NULL')} UNION ALL ${usesByForks}`,
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
export interface Reachability extends Fork {
  readonly fork: number | null;
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
  const row = yield* first(lockBranch, branch);
  if (row === undefined) return undefined;
  // A writer of the branch holds the lock of its session.
  yield* run(lockSession, row.session);
  return yield* reachedBy(branch, row, yield* all(selectUses, branch, row.session));
}

/** Snapshots that one statement reads. */
const batch = 2000;

/** Works out what is needed of a branch, and holds nothing. `'long'`: its session is, and `isLong` was not said. */
export function* reachabilityNow(
  branch: number,
  { isLong }: { readonly isLong: boolean },
): Plan<Reachability | 'long' | undefined> {
  const row = yield* first(selectBranch, branch);
  if (row === undefined) return undefined;
  const { session, next_index: end } = row;
  if (end === null || end <= batch) {
    return yield* reachedBy(branch, row, yield* all(selectUses, branch, session));
  }
  if (!isLong) return 'long';
  const uses: Use[] = [];
  for (let from = 0; from < end; from += batch) {
    uses.push(...(yield* all(selectListedUses, branch, session, from, from + batch)));
  }
  uses.push(...(yield* all(selectOtherUses, branch, session)));
  return yield* reachedBy(branch, row, uses);
}

function* reachedBy(branch: number, row: BranchRow, found: readonly Use[]): Plan<Reachability> {
  const uses = new Map<number | null, number>();
  for (const { view, branch_length: to } of found)
    uses.set(view, Math.max(to, uses.get(view) ?? 0));
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
    session: row.session,
    parent: row.parent,
    fork: row.fork,
    forkView: row.fork_view,
    forkSnapshot: row.fork_snapshot,
    ranges: ranges.filter(([from, to]) => to > from),
    needsParent: byDefault !== undefined,
    hasSnapshots: found.some((use) => use.by_snapshot === 1),
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
