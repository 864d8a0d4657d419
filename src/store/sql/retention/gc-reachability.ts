import { all, type Plan, run, statement } from '../database/query.ts';
import { fromStored, gapsBetween, messageRowId, rowsPerBranch } from '../history/segments.ts';

/** A branch, and where it left its parent. */
export interface BranchRow {
  readonly row_id: number;
  readonly session: number;
  readonly parent: number | null;
  readonly fork: number | null;
  readonly fork_view: number | null;
  readonly fork_snapshot: number | null;
  /** `null`: the session has been erased. */
  readonly next_index: number | null;
}
const branchesOf = (list: string): string => `
  SELECT b.row_id, b.session, b.parent, b.fork, b.fork_view, b.fork_snapshot, z.next_index
  FROM @branches b LEFT JOIN @sessions z ON z.row_id = b.session WHERE b.row_id ${list} ORDER BY b.row_id`;
const selectBranches = statement<BranchRow>('need_branches', (d) => branchesOf(d.integers('$1')));
const lockBranches = statement<BranchRow>(
  'need_held_branches',
  (d) => `${branchesOf(d.integers('$1'))} ${d.lock('b')}`,
);
const sessionsOf = (lock: (alias: string) => string, list: string): string =>
  `SELECT z.row_id FROM @sessions z WHERE z.row_id ${list} ORDER BY z.row_id ${lock('z')}`;
const lockSessions = statement<{ row_id: number }>('need_sessions', (d) =>
  sessionsOf(d.lock, d.integers('$1')),
);
const lockFreeSessions = statement<{ row_id: number }>('need_free_sessions', (d) =>
  sessionsOf(d.lockFree, d.integers('$1')),
);

/** Up to where states need a branch, under one of its views or none. */
interface Use {
  readonly branch: number;
  readonly view: number | null;
  readonly branch_length: number;
  readonly by_snapshot: number;
}
const selectUses = statement<Use>('need_uses', (d) => {
  const [branches, sessions] = [d.integers('$1'), d.integers('$2')];
  return `
    SELECT s.branch, s.view, MAX(s.branch_length) AS branch_length, 1 AS by_snapshot FROM @snapshots s
    WHERE s.session ${sessions} AND s.branch ${branches} GROUP BY s.branch, s.view
    UNION ALL
    SELECT c.parent AS branch, c.fork_view AS view, MAX(c.fork) AS branch_length, 0 AS by_snapshot
    FROM @branches c WHERE c.parent ${branches} AND c.fork IS NOT NULL GROUP BY c.parent, c.fork_view`;
});

interface ViewRow {
  /** A branch of which it holds rows: its own, or another. */
  readonly held: number;
  readonly row_id: number;
  readonly branch: number;
  readonly own_from: number;
  readonly base: string;
}
const selectViews = statement<ViewRow>(
  'need_views',
  (d) => `
    SELECT v.branch AS held, v.row_id, v.branch, v.own_from, v.base FROM @views v
    WHERE v.branch ${d.integers('$1')}
    UNION ALL
    SELECT x.branch AS held, v.row_id, v.branch, v.own_from, v.base FROM @view_refs x
    JOIN @views v ON v.branch = x.view_branch AND v.row_id = x.view
    WHERE x.branch ${d.integers('$1')}`,
);
type Range = readonly [number, number];

/** The rows and views of a branch that are needed. */
export interface Reachability extends BranchRow {
  /** Rows that some state holds. */
  readonly ranges: readonly Range[];
  /** Some state holds what stands before its rows on the parent. */
  readonly needsParent: boolean;
  /** Something is on it, or held of it. */
  readonly isHeld: boolean;
  /** Its views that no state is under. */
  readonly unusedViews: readonly number[];
}

/** About how many snapshots have their branches read together. */
const batch = 2000;

/** The needs of some branches, and the branches that were left out. */
export interface Reached {
  readonly needs: readonly Reachability[];
  readonly left: readonly number[];
}

/**
 * Works out what is needed of some branches, and holds their sessions until the transaction ends, as a writer of the branches does.
 * Leaves out branches of sessions that others hold, and what is too much at once; but not all of them.
 */
export function* reachabilityHeld(branches: readonly number[]): Plan<Reached> {
  const { rows, left } = yield* someOf(branches);
  const sessions = [...new Set(rows.filter(isThere).map((row) => row.session))];
  const free = new Set(
    (yield* all(lockFreeSessions, JSON.stringify(sessions))).map((row) => row.row_id),
  );
  let held = rows.filter((row) => free.has(row.session) || !isThere(row));
  if (held.length === 0 && rows.length > 0) {
    // Nothing else is locked, so that no turn of another session has to wait with it.
    held = rows.slice(0, 1);
    yield* run(lockSessions, JSON.stringify(held.map((row) => row.session)));
  }
  const busy = rows.filter((row) => !held.includes(row)).map((row) => row.row_id);
  // The rows as they are now that they are held.
  const now = yield* all(lockBranches, JSON.stringify(held.map((row) => row.row_id)));
  return { needs: yield* reachedBy(now), left: [...left, ...busy] };
}

/** Works out what is needed of some branches, and holds nothing. */
export function* reachabilityNow(branches: readonly number[]): Plan<readonly Reachability[]> {
  const needs: Reachability[] = [];
  for (let left = branches; left.length > 0; ) {
    const some = yield* someOf(left);
    needs.push(...(yield* reachedBy(some.rows)));
    left = some.left;
  }
  return needs;
}

/** The ids of the messages on a branch that no state holds, in ranges. */
export function gapsOf({ row_id: branch, ranges }: Reachability): readonly Range[] {
  return gapsBetween(ranges).map(([from, to]) => [
    messageRowId(branch, from),
    messageRowId(branch, to),
  ]);
}

function isThere(row: BranchRow): boolean {
  return row.next_index !== null;
}

/** As many of some branches as have about a batch of snapshots together, and the numbers of the others. */
function* someOf(
  branches: readonly number[],
): Plan<{ readonly rows: readonly BranchRow[]; readonly left: readonly number[] }> {
  const found = yield* all(selectBranches, JSON.stringify(branches));
  let size = 0;
  const end = found.findIndex((row, at) => {
    size += row.next_index ?? 0;
    return at > 0 && size > batch;
  });
  if (end < 0) return { rows: found, left: [] };
  return { rows: found.slice(0, end), left: found.slice(end).map((row) => row.row_id) };
}

function* reachedBy(rows: readonly BranchRow[]): Plan<readonly Reachability[]> {
  if (rows.length === 0) return [];
  const list = JSON.stringify(rows.map((row) => row.row_id));
  const sessions = JSON.stringify([...new Set(rows.map((row) => row.session))]);
  const uses = Map.groupBy(yield* all(selectUses, list, sessions), (use) => use.branch);
  const views = Map.groupBy(yield* all(selectViews, list), (view) => view.held);
  return rows.map((row) => reachedOf(row, uses.get(row.row_id) ?? [], views.get(row.row_id) ?? []));
}

function reachedOf(row: BranchRow, found: readonly Use[], views: readonly ViewRow[]): Reachability {
  const branch = row.row_id;
  const uses = new Map<number | null, number>();
  for (const { view, branch_length: to } of found)
    uses.set(view, Math.max(to, uses.get(view) ?? 0));
  const ranges: Range[] = [];
  const byDefault = uses.get(null);
  if (byDefault !== undefined) ranges.push([0, byDefault]);
  let hasUsedViews = false;
  const unusedViews: number[] = [];
  for (const view of views) {
    const to = view.branch === branch ? uses.get(view.row_id) : undefined;
    if (view.branch === branch && to === undefined) unusedViews.push(view.row_id);
    if (to !== undefined) {
      hasUsedViews = true;
      ranges.push([view.own_from, to]);
    }
    if (to !== undefined || view.branch !== branch) {
      ranges.push(...rangesOn(branch, fromStored(view.base, view.branch)));
    }
  }
  const held = ranges.filter(([from, to]) => to > from);
  return {
    ...row,
    ranges: held,
    needsParent: byDefault !== undefined,
    isHeld: hasUsedViews || held.length > 0 || found.some((use) => use.by_snapshot === 1),
    unusedViews,
  };
}

function rangesOn(branch: number, segments: readonly Range[]): Range[] {
  const start = messageRowId(branch, 0);
  return segments
    .filter(([from]) => from >= start && from < start + rowsPerBranch)
    .map(([from, to]) => [from - start, to - start]);
}
