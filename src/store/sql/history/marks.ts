import type { Dialect } from '../database/dialect.ts';
import { all, type Plan, statement } from '../database/query.ts';
import { uuidFromHex } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import type { Level } from './lineage.ts';

/** A listed, succeeded snapshot of a session, as one JSON value. */
export type MarkRow = readonly [
  rowId: number,
  id: string,
  branch: number,
  length: number,
  view: number | null,
  common: number | null,
  marks: number,
];

/** The column that gives a {@link MarkRow} of the snapshot `s` with its view `v`. */
export function markRows(d: Dialect): string {
  // An edit has the messages of its parent, unless it saves the partial state of an aborted run.
  const marks = `CASE WHEN s.event = ${code.toolIterationEnd} THEN 0 WHEN s.event = ${code.edit} AND s.length =
    (SELECT q.length FROM @snapshots q WHERE q.row_id = s.parent) THEN 0 ELSE 1 END`;
  const columns = ['s.row_id', d.hex('s.id'), 's.branch', 's.length', 's.view', 'v.common', marks];
  return d.asJson(columns);
}

/**
 * Which message was the last of which turn. A snapshot leaves its mark when its messages are still the beginning of this
 * history: no view on the way from it to the state cuts them short. Of two that end at the same message the later counts.
 */
export function marksFrom(
  levels: readonly Level[],
  rows: readonly MarkRow[],
  length: number,
): ReadonlyMap<number, string> {
  const marks = new Map<number, string>();
  const commons = new Map(rows.map(([, , , , view, common]) => [view, common]));
  for (const { viewRowId, common } of levels) commons.set(viewRowId, common);
  const newestFirst = rows.toSorted(([a], [b]) => b - a);
  const byBranch = Map.groupBy(newestFirst, ([, , branch]) => branch);
  let bound = length;
  for (const level of levels) {
    let view = level.viewRowId;
    for (const [rowId, id, , size, at, , leavesMark] of byBranch.get(level.branch) ?? []) {
      if (rowId > level.limit) continue;
      if (at !== view) bound = Math.min(bound, commons.get(view) ?? bound);
      view = at;
      if (leavesMark === 1 && size > 0 && size <= bound && !marks.has(size - 1)) {
        marks.set(size - 1, uuidFromHex(id));
      }
    }
    // The messages before a view's own rows are in the view: the parent's snapshots are beyond it.
    if (view !== null) bound = Math.min(bound, commons.get(view) ?? bound);
    if (bound === 0) break;
  }
  return marks;
}

// Snapshots that end behind the page leave no mark in it; a rewritten one still says what was left of those before it.
const selectMarks = statement<{ idx: number; body: string }>(
  'page_marks',
  (d) => `
    SELECT s.idx, ${markRows(d)} AS body FROM @snapshots s
    LEFT JOIN @views v ON v.branch = s.branch AND v.row_id = s.view
    WHERE s.session = $1 AND s.idx < $2 AND s.status = ${code.succeeded} AND (s.length <= $4 OR s.view IS NOT NULL)
    ORDER BY s.idx DESC LIMIT $3`,
);

// Higher than any index.
const end = 2 ** 31 - 1;
const firstBatch = 64;
const maxBatch = 4096;

/**
 * The snapshots of a session that can have left a mark at positions `[from, to)`, the newest first. The first one on the
 * path that ends a turn at `from` or before is the last that is needed: what came before it on the path is shorter, or was
 * trimmed to it.
 */
export function* marksWithin(
  session: number,
  levels: readonly Level[],
  { from, to }: { readonly from: number; readonly to: number },
): Plan<readonly MarkRow[]> {
  const found: MarkRow[] = [];
  const limits = new Map(levels.map(({ branch, limit }) => [branch, limit]));
  const isLast = ([rowId, , branch, length, , , leavesMark]: MarkRow): boolean =>
    leavesMark === 1 && length <= from && rowId <= (limits.get(branch) ?? -1);
  for (let [before, size] = [end, firstBatch]; ; size = Math.min(size * 4, maxBatch)) {
    const rows = yield* all(selectMarks, session, before, size, to);
    const marks = rows.map(({ body }) => JSON.parse(body) as MarkRow);
    found.push(...marks);
    before = rows.at(-1)?.idx ?? 0;
    if (rows.length < size || marks.some(isLast)) return found;
  }
}
