import { all, first, one, type Plan, run, statement } from '../database/query.ts';
import { parseLineage, selectLineage } from '../history/lineage.ts';
import { code } from '../values/codes.ts';
import type { BranchRow } from './gc-reachability.ts';

// A view says how much of the history before it is left: the cut. When snapshots or branches go, the next view on the path
// takes over the cuts that were on them: otherwise messages would get the marks of earlier turns that ended with other messages.

/** A snapshot, with how much of the path before its view, if it has one, is left at its beginning. */
export interface CutRow {
  readonly view: number | null;
  readonly common: number | null;
}

/** Snapshots that go, and those that stay and hung on them, with the nearest ancestor that stays. */
interface Removal {
  readonly plan: { readonly parents: ReadonlyMap<number, number | null> };
  readonly victims: ReadonlySet<number>;
  readonly moves: ReadonlyMap<number, number | null>;
}

const lowerCommon = statement(
  'cut_lower',
  'UPDATE @views SET common = $2 WHERE row_id = $1 AND common > $2',
);

/** Keeps the cuts on snapshots that are removed. */
export function* keepCutsOfSnapshots(
  { plan, victims, moves }: Removal,
  rows: ReadonlyMap<number, CutRow>,
): Plan<void> {
  for (const [child, parent] of moves) {
    const staying = [rows.get(child)?.view, parent === null ? null : rows.get(parent)?.view];
    const lost: CutRow[] = [];
    for (let up = plan.parents.get(child); up != null && victims.has(up); ) {
      const row = rows.get(up);
      if (row !== undefined && row.view !== null && !staying.includes(row.view)) lost.push(row);
      up = plan.parents.get(up);
    }
    if (parent === null || lost.length === 0) continue;
    const { lineage } = yield* one(selectLineage, child);
    const next = parseLineage(lineage).find(({ viewRowId }) => viewRowId !== null)?.viewRowId;
    const commons = lost.filter(({ view }) => view !== next).map(({ common }) => common ?? 0);
    if (next != null && commons.length > 0) yield* run(lowerCommon, next, Math.min(...commons));
  }
}

/** A snapshot that leaves a mark, or could. */
const isListed = `s.session = $1 AND s.branch = $2 AND s.idx IS NOT NULL AND s.status = ${code.succeeded}`;

// When a snapshot on the path lies under the view, the cut is on that.
const selectCut = statement<{ common: number }>(
  'cut_of_fork',
  `SELECT v.common FROM @views v WHERE v.branch = $2 AND v.row_id = $3
   AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE ${isListed} AND s.view = $3 AND s.row_id <= $4)`,
);
const selectFirst = statement<{ view: number | null; row_id: number }>(
  'cut_first',
  `SELECT s.view, MIN(s.row_id) AS row_id FROM @snapshots s WHERE ${isListed} GROUP BY s.view`,
);
const lowerFirst = statement(
  'cut_lower_first',
  'UPDATE @views SET common = $3 WHERE branch = $1 AND row_id <= $2 AND common > $3',
);
const selectChildren = statement<{ row_id: number }>(
  'cut_children',
  'SELECT row_id FROM @branches WHERE parent = $1 AND fork IS NULL AND fork_snapshot < $2',
);

/** Keeps the cut at the place where a branch left its parent, before the branch forgets the place or goes itself. */
export function* keepCutOfFork(row: BranchRow): Plan<void> {
  const { row_id: branch, session, parent, fork_view: view, fork_snapshot: snapshot } = row;
  if (parent === null || view === null || snapshot === null) return;
  const cut = yield* first(selectCut, session, parent, view, snapshot);
  if (cut !== undefined) yield* lowerFirstViews(session, branch, cut.common);
}

/** The views through which paths come to the beginning of a branch without another snapshot in between. */
function* lowerFirstViews(session: number, branch: number, common: number): Plan<void> {
  const rows = yield* all(selectFirst, session, branch);
  const [earliest] = rows.toSorted((a, b) => a.row_id - b.row_id);
  const none = { view: Number.MAX_SAFE_INTEGER, row_id: Number.MAX_SAFE_INTEGER };
  const { view, row_id: before } = earliest ?? none;
  if (view !== null) yield* run(lowerFirst, branch, view, common);
  for (const child of yield* all(selectChildren, branch, before)) {
    yield* lowerFirstViews(session, child.row_id, common);
  }
}
