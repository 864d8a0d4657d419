import type { Page } from '../../../protocol/session.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import type { ListOptions, Scope, SnapshotListing } from '../../contract/store.ts';
import { checkLimit, firstPage, parseCursor } from '../../rules/page.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, type Plan, statement } from '../database/query.ts';
import { activeEnds, lineageTable } from '../history/lineage.ts';
import type { StateContext } from '../history/state-rows.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';
import { orphanedColumn } from './locate.ts';
import { openHash, type SnapshotRow, snapshotColumns, toSnapshot } from './snapshot-row.ts';

interface ListedRow extends SnapshotRow {
  readonly now: number;
  readonly orphaned: number;
  readonly reached_id: Uint8Array | null;
  readonly reached_hash: Uint8Array | null;
}

// A row that an open run works on shows what the run has reached.
const list = (d: Dialect): string => `
  WITH RECURSIVE o AS (SELECT row_id, head FROM @sessions WHERE owner = $1 AND agent = $2 AND id = $3),
  ${lineageTable(d, 'active', `o JOIN @sessions h ON h.row_id = o.row_id ${activeEnds}`)}
  SELECT ${d.now} AS now, ${snapshotColumns}, t.id AS reached_id, t.state_hash AS reached_hash, ${orphanedColumn('s', 'p')}
  FROM o JOIN @sessions z ON z.row_id = o.row_id
  JOIN @snapshots s ON s.session = z.row_id
  LEFT JOIN @snapshots p ON p.row_id = s.parent
  LEFT JOIN @runs r ON r.own_snapshot = s.row_id AND r.session = z.row_id
  LEFT JOIN @snapshots t ON t.row_id = COALESCE(r.checkpoint, r.base)
  WHERE s.idx`;
/** The statements of the lists from a place on, in one direction: of all snapshots, and of those on the active path. */
const selecting = (name: string, comparison: '<' | '>', order: string) => ({
  all: statement<ListedRow>(
    name,
    (d) => `${list(d)} ${comparison} $4 ORDER BY s.idx ${order} LIMIT $5`,
  ),
  active: statement<ListedRow>(
    `${name}_active`,
    (d) => `
      SELECT * FROM (${list(d)} ${comparison} $4) x WHERE x.orphaned = 0 ORDER BY x.idx ${order} LIMIT $5`,
  ),
});
const oldestFirst = { ...selecting('snapshot_list', '>', ''), start: -1 };
// It starts behind every index: at the largest value of the column in Postgres.
const newestFirst = { ...selecting('snapshot_list_newest', '<', 'DESC'), start: 2_147_483_647 };

/** A page of a session's snapshots without their states, by index; one query. */
export function* listSnapshots(
  scope: Scope,
  sessionId: string,
  { limit = 50, cursor, ...which }: ListOptions & SnapshotListing,
  { cipher }: StateContext,
): Plan<Page<Snapshot>> {
  checkLimit(limit);
  const listing = which.newestFirst === true ? newestFirst : oldestFirst;
  const select = which.includeOrphaned === true ? listing.all : listing.active;
  const [after] = parseCursor(cursor) ?? [listing.start];
  const rows = yield* all(select, ...scopeKey(scope), sessionKey(sessionId), after, limit + 1);
  const page = firstPage(rows, ({ idx }) => [idx ?? 0, ''], limit);
  const items = page.items.map((row) => {
    const reading = { now: row.now, orphaned: row.orphaned === 1 };
    if (row.run_heartbeat === null) return toSnapshot(row, reading, cipher);
    const reached = { id: row.reached_id, state_hash: row.reached_hash };
    return toSnapshot(row, { ...reading, stateHash: openHash(row, reached, cipher) }, cipher);
  });
  return { ...page, items };
}
