import { hasStatus, WaymarkError } from '../../../core/error.ts';
import type { SessionInfo } from '../../../protocol/session.ts';
import type { ExportRow } from '../../../session/export-session.ts';
import type { Scope } from '../../contract/store.ts';
import { all, type Plan, statement } from '../database/query.ts';
import { activeEnds, lineageTable } from '../history/lineage.ts';
import type { StateContext } from '../history/state-rows.ts';
import { orphanedColumn } from '../snapshots/locate.ts';
import {
  joinBranch,
  type PlacedRow,
  placeColumns,
  StateReader,
} from '../snapshots/session-states.ts';
import { type SnapshotRow, snapshotColumns, toSnapshot } from '../snapshots/snapshot-row.ts';
import { uuidText } from '../values/bytes.ts';
import { code, fromTotals } from '../values/codes.ts';
import { findSession, toSessionInfo } from './sessions.ts';

interface TreeRow extends SnapshotRow, PlacedRow {
  readonly now: number;
  readonly orphaned: number;
  readonly totals: string | null;
}

// The listed ones by index, then the others.
const selectTree = statement<TreeRow>(
  'export_rows',
  (d) => `
    WITH RECURSIVE ${lineageTable(d, 'active', `@sessions h ${activeEnds} AND h.row_id = $1`)}
    SELECT ${d.now} AS now, ${snapshotColumns}, ${placeColumns}, ${orphanedColumn('s', 'p')}, s.totals
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session ${joinBranch(d)}
    LEFT JOIN @snapshots p ON p.row_id = s.parent
    LEFT JOIN @runs r ON r.own_snapshot = s.row_id AND r.session = z.row_id
    WHERE s.session = $1 AND s.status <> ${code.pending}
    ORDER BY CASE WHEN s.idx IS NULL THEN 1 ELSE 0 END, s.idx, s.row_id`,
);

/** A session with its snapshots, parents first, on its way out. */
export interface ExportedSession {
  readonly info: SessionInfo;
  readonly rows: readonly ExportRow[];
}

/** Reads a whole session; `undefined` when there is none. */
export function* exportSession(
  scope: Scope,
  sessionId: string,
  context: StateContext,
): Plan<ExportedSession | undefined> {
  const session = yield* findSession(scope, sessionId);
  if (session === undefined) return undefined;
  const tree = yield* all(selectTree, session.row_id);
  const reader = new StateReader(context);
  yield* reader.expect(tree);
  const rows: ExportRow[] = [];
  for (const row of tree) {
    const reading = { now: row.now, orphaned: row.orphaned === 1 };
    try {
      const state = yield* reader.read(row);
      const snapshot = toSnapshot(row, reading, context.cipher);
      rows.push({ snapshot, totals: fromTotals(row.totals), state });
    } catch (error) {
      if (!hasStatus(error, 'DATA_LOSS')) throw error;
      throw new WaymarkError('DATA_LOSS', `Snapshot "${uuidText(row.id)}": ${error.message}`);
    }
  }
  return { info: toSessionInfo(session, context.cipher), rows };
}
