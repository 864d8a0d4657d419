import type { Marks } from '../../../session/session-state.ts';
import type { Dialect } from '../database/dialect.ts';
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
): Marks {
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
    // What stands before a view's own rows is in the view: the parent's snapshots are beyond it.
    if (view !== null) bound = Math.min(bound, commons.get(view) ?? bound);
    if (bound === 0) break;
  }
  return marks;
}
