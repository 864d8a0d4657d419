import type { Dialect } from '../database/dialect.ts';
import { statement } from '../database/query.ts';
import { code } from '../values/codes.ts';
import { fromStored, messageRowId, type Segment, type View } from './segments.ts';

/**
 * A branch on the way from a state to the root: the rows of it that belong to the state (`upto`, under a view), and the
 * last snapshot on it that is on the path.
 */
export interface Level {
  readonly branch: number;
  readonly to: number;
  readonly viewRowId: number | null;
  readonly ownFrom: number | null;
  readonly base: string | null;
  readonly common: number | null;
  readonly limit: number;
}

/**
 * The recursive table `name(d, no, upto, view, parent, fork, fork_view, fork_snapshot, lim)` over the branches from a
 * snapshot to its root. A snapshot is on the path when its branch is in it and its number is not above `lim`. One that did
 * not succeed may have been written long after its parent; only what the parent hangs on is on its path.
 */
export function lineageTable(d: Dialect, name: string, source: string): string {
  const columns = 'b.parent, b.fork, b.fork_view, b.fork_snapshot';
  return `${name}(d, row_id, branch_length, view, parent, fork, fork_view, fork_snapshot, lim) AS (
    SELECT 0, b.row_id, l.branch_length, l.view, ${columns},
      CASE WHEN l.status = ${code.succeeded} THEN l.row_id ELSE COALESCE(l.parent, 0) END
    FROM ${source} JOIN @branches b ON b.row_id = l.branch
    UNION ALL
    SELECT a.d + 1, b.row_id, a.fork, a.fork_view, ${columns}, a.fork_snapshot
    FROM ${name} a ${d.lookup('branches', 'b', 'b.row_id = a.parent')})`;
}

/** The active ends of a session `h`, joined to it as `l`: its head, and the last snapshot of the turn that is worked on. */
export const activeEnds =
  'LEFT JOIN @runs w ON w.session = h.row_id JOIN @snapshots l ON l.row_id IN (h.head, w.base)';

/** The levels of a lineage table as one JSON value. */
export function lineageColumn(d: Dialect, name: string): string {
  const columns = [
    'a.d',
    'a.row_id',
    'a.branch_length',
    'a.view',
    'v.own_from',
    'v.base',
    'v.common',
    'a.lim',
  ];
  return `(SELECT ${d.rowsAsJson(columns)} FROM ${name} a LEFT JOIN @views v ON v.branch = a.row_id AND v.row_id = a.view)`;
}

/** The levels of one snapshot, by its row. */
export const selectLineage = statement<{ lineage: string | null }>(
  'tree_lineage',
  (d) => `
    WITH RECURSIVE ${lineageTable(d, 'up', '(SELECT * FROM @snapshots WHERE row_id = $1) l')}
    SELECT ${lineageColumn(d, 'up')} AS lineage`,
);

type StoredLevel = readonly [
  depth: number,
  branch: number,
  to: number,
  viewRowId: number | null,
  ownFrom: number | null,
  base: string | null,
  common: number | null,
  limit: number | null,
];

/** The levels, the state's own branch first. */
export function parseLineage(text: string | null): readonly Level[] {
  if (text === null) return [];
  const levels = (JSON.parse(text) as StoredLevel[]).sort(([a], [b]) => a - b);
  return levels.map(([, branch, to, viewRowId, ownFrom, base, common, limit]) => ({
    branch,
    to,
    viewRowId,
    ownFrom,
    base,
    common,
    limit: limit ?? 0,
  }));
}

/** Where the messages of a state lie. A view says all that stands before its own rows; without one the parent does. */
export function viewOf(levels: readonly Level[]): View | undefined {
  const [own] = levels;
  if (own === undefined) return undefined;
  const before: Segment[] = [];
  for (const level of levels) {
    const { branch, to, ownFrom, base } = level;
    if (level !== own && to > (ownFrom ?? 0)) {
      before.unshift([messageRowId(branch, ownFrom ?? 0), messageRowId(branch, to)]);
    }
    if (base !== null) {
      before.unshift(...fromStored(base, branch));
      break;
    }
  }
  return { before, branch: own.branch, from: own.ownFrom ?? 0, to: own.to };
}
