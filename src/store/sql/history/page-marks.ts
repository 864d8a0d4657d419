import { all, type Plan, statement } from '../database/query.ts';
import { code } from '../values/codes.ts';
import type { Level } from './lineage.ts';
import { type MarkRow, markRows } from './mark-rows.ts';

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
const largestBatch = 4096;

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
  for (let [before, size] = [end, firstBatch]; ; size = Math.min(size * 4, largestBatch)) {
    const rows = yield* all(selectMarks, session, before, size, to);
    const marks = rows.map(({ body }) => JSON.parse(body) as MarkRow);
    found.push(...marks);
    before = rows.at(-1)?.idx ?? 0;
    if (rows.length < size || marks.some(isLast)) return found;
  }
}
