import { isSnapshotId } from '../../../protocol/ids.ts';
import type { MessageOptions, MessagePage } from '../../../protocol/message-page.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import { toPlainPage, toPlainState } from '../../../session/session-state.ts';
import type { LoadedState, Lookup, Scope, StateBase } from '../../contract/store.ts';
import type { Dialect } from '../database/dialect.ts';
import { first, type Plan, statement } from '../database/query.ts';
import { activeEnds, lineageColumn, lineageTable, parseLineage } from '../history/lineage.ts';
import { type Location, locationAt } from '../history/location.ts';
import { marksFrom, marksWithin } from '../history/marks.ts';
import { readPage, readState, type StatePlace, type StateRead } from '../history/read-state.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';
import { openHash, type SnapshotRow, snapshotColumns, toSnapshot } from './snapshot-row.ts';

/** A snapshot's row together with where the state that it shows lies. */
export interface LocatedRow extends SnapshotRow {
  readonly now: number;
  readonly orphaned: number;
  readonly session_row_id: number;
  readonly snapshot_row_id: number | null;
  readonly totals: string | null;
  readonly run_id: Uint8Array | null;
  readonly run_turn: number | null;
  readonly run_created_at: number | null;
  /** The row that holds the state: the snapshot itself, or what its open run has reached. */
  readonly at_row_id: number | null;
  readonly at_idx: number | null;
  readonly at_parent: number | null;
  readonly at_view: number | null;
  readonly at_parent_view: number | null;
  readonly at_custom: number | null;
  readonly at_artifacts: number | null;
  readonly at_id: Uint8Array | null;
  readonly at_hash: Uint8Array | null;
  readonly lineage: string | null;
}

/** Whether a snapshot is on the path from its session's head to the root, by the table `active`. */
function isActive(alias: string): string {
  return `EXISTS (SELECT 1 FROM active a WHERE a.row_id = ${alias}.branch AND ${alias}.row_id <= a.lim)`;
}

/** A succeeded snapshot is orphaned off the active path, any other when its parent is. */
export function orphanedColumn(s: string, p: string): string {
  return `CASE WHEN ${s}.row_id = z.head THEN 0
    WHEN ${s}.status = ${code.succeeded} THEN CASE WHEN ${isActive(s)} THEN 0 ELSE 1 END
    WHEN ${p}.row_id IS NULL OR ${p}.row_id = z.head THEN 0
    WHEN ${isActive(p)} THEN 0 ELSE 1 END AS orphaned`;
}

// `x` says which snapshot, which run and which session; the rest is the same however they were found.
const locate = (d: Dialect, x: string): string => `
  WITH RECURSIVE x AS (${x}),
  ${lineageTable(d, 'up', 'x JOIN @snapshots l ON l.row_id = x.at_row_id')},
  ${lineageTable(d, 'active', `x JOIN @sessions h ON h.row_id = x.session_row_id ${activeEnds}`)}
  SELECT ${snapshotColumns}, ${d.now} AS now, ${orphanedColumn('s', 'p')},
    z.row_id AS session_row_id, s.row_id AS snapshot_row_id, s.totals,
    r.id AS run_id, r.turn AS run_turn, r.created_at AS run_created_at,
    t.row_id AS at_row_id, t.idx AS at_idx, t.parent AS at_parent, t.view AS at_view, tp.view AS at_parent_view,
    t.custom AS at_custom, t.artifacts AS at_artifacts, t.id AS at_id, t.state_hash AS at_hash,
    ${lineageColumn(d, 'up')} AS lineage
  FROM x JOIN @sessions z ON z.row_id = x.session_row_id
  LEFT JOIN @snapshots s ON s.row_id = x.snapshot_row_id
  LEFT JOIN @runs r ON r.session = x.run_session
  LEFT JOIN @snapshots g ON g.row_id = r.start
  LEFT JOIN @snapshots t ON t.row_id = x.at_row_id
  LEFT JOIN @snapshots tp ON tp.row_id = t.parent
  LEFT JOIN @snapshots p ON p.row_id =
    CASE WHEN s.row_id IS NOT NULL THEN s.parent WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END`;

// The reserved id of an open run reads as pending; a snapshot that has been written under it comes first.
const locateById = statement<LocatedRow>('locate_by_id', (d) =>
  locate(
    d,
    `SELECT s.row_id AS snapshot_row_id, r.session AS run_session, COALESCE(s.session, r.session) AS session_row_id,
      CASE WHEN r.session IS NULL THEN s.row_id ELSE COALESCE(r.checkpoint, r.base) END AS at_row_id
    FROM (SELECT id FROM @snapshots WHERE id = $1 UNION SELECT id FROM @runs WHERE id = $1) i
    LEFT JOIN @snapshots s ON s.id = i.id
    LEFT JOIN @runs r ON r.id = i.id AND (s.row_id IS NULL OR s.status = ${code.pending})
    JOIN @sessions o ON o.row_id = COALESCE(s.session, r.session)
    WHERE o.owner = $2 AND o.agent = $3`,
  ),
);

const locateHead = statement<LocatedRow>('locate_head', (d) =>
  locate(
    d,
    `SELECT o.head AS snapshot_row_id, NULLIF(0, 0) AS run_session, o.row_id AS session_row_id, o.head AS at_row_id
    FROM @sessions o WHERE o.id = $1 AND o.owner = $2 AND o.agent = $3 AND o.head IS NOT NULL`,
  ),
);

// For rows without an id, such as the checkpoint of a run.
export const locateByRowId = statement<LocatedRow>('locate_by_row_id', (d) =>
  locate(
    d,
    `SELECT s.row_id AS snapshot_row_id, NULLIF(0, 0) AS run_session, s.session AS session_row_id, s.row_id AS at_row_id
    FROM @snapshots s WHERE s.row_id = $1`,
  ),
);

/** The row that a lookup finds, without its state. */
export function* findRow(scope: Scope, lookup: Lookup): Plan<LocatedRow | undefined> {
  const key = scopeKey(scope);
  if (!('snapshotId' in lookup)) {
    return yield* first(locateHead, sessionKey(lookup.sessionId), ...key);
  }
  if (!isSnapshotId(lookup.snapshotId)) return undefined;
  return yield* first(locateById, uuidBytes(lookup.snapshotId), ...key);
}

/** The metadata of what was found. A run that has no row yet reads as a pending snapshot. */
export function metadataOf(row: LocatedRow, { cipher }: StateContext): Snapshot {
  const reading = { now: row.now, orphaned: row.orphaned === 1 };
  if (row.snapshot_row_id !== null && row.run_id === null) return toSnapshot(row, reading, cipher);
  const reached = {
    ...reading,
    stateHash: openHash(row, { id: row.at_id, state_hash: row.at_hash }, cipher),
  };
  if (row.snapshot_row_id !== null) return toSnapshot(row, reached, cipher);
  const pending: SnapshotRow = {
    ...row,
    id: row.run_id ?? row.id,
    idx: null,
    turn: row.run_turn ?? 0,
    event: code.turnEnd,
    status: code.pending,
    created_at: row.run_created_at ?? row.now,
    updated_at: row.run_heartbeat ?? row.now,
  };
  return toSnapshot(pending, reached, cipher);
}

/** The state of what was found; with `marked`, together with the snapshots on its path. */
export function* stateOf(
  row: LocatedRow,
  context: StateContext,
  options: { readonly marked: boolean },
): Plan<StateRead> {
  const place = placeOf(row, context);
  return yield* readState(place, context, options.marked ? row.session_row_id : undefined);
}

function placeOf(row: LocatedRow, { cipher }: StateContext): StatePlace {
  return {
    levels: parseLineage(row.lineage),
    custom: row.at_custom,
    artifacts: row.at_artifacts,
    stateHash: openHash(row, { id: row.at_id, state_hash: row.at_hash }, cipher),
  };
}

/** A snapshot with its plain state, marked. */
export function* readSnapshot(
  scope: Scope,
  lookup: Lookup,
  context: StateContext,
  { messages: page }: MessageOptions = {},
): Plan<Snapshot | undefined> {
  const row = yield* findRow(scope, lookup);
  if (row === undefined) return undefined;
  if (page !== undefined) return yield* readSnapshotPage(row, page, context);
  const read = yield* stateOf(row, context, { marked: true });
  const levels = parseLineage(row.lineage);
  const marks = marksFrom(levels, read.marks, read.state.history.length);
  return { ...metadataOf(row, context), state: toPlainState(read.state, { marks }) };
}

function* readSnapshotPage(
  row: LocatedRow,
  page: MessagePage,
  context: StateContext,
): Plan<Snapshot> {
  const place = placeOf(row, context);
  const { messages, ...read } = yield* readPage(place, page, context);
  const range = { from: read.from, to: read.from + messages.length };
  const rows = yield* marksWithin(row.session_row_id, place.levels, range);
  const marks = marksFrom(place.levels, rows, read.total);
  return { ...metadataOf(row, context), ...toPlainPage(read, messages, { ...read, marks }) };
}

export function* loadState(
  scope: Scope,
  lookup: Lookup,
  context: StateContext,
): Plan<LoadedState | undefined> {
  const row = yield* findRow(scope, lookup);
  if (row === undefined) return undefined;
  const read = yield* stateOf(row, context, { marked: false });
  const ref = locationOfRow(row, read, context.database);
  const snapshotId = uuidText(row.snapshot_row_id === null ? (row.run_id ?? row.id) : row.id);
  return { snapshotId, state: read.state, ref, snapshot: metadataOf(row, context) };
}

export interface ReadBase extends StateBase {
  readonly row: LocatedRow;
}

/** The state in the row with this number, which may be a checkpoint. */
export function* readBase(rowId: number, context: StateContext): Plan<ReadBase | undefined> {
  const row = yield* first(locateByRowId, rowId);
  if (row === undefined) return undefined;
  const read = yield* stateOf(row, context, { marked: false });
  const ref = locationOfRow(row, read, context.database);
  // A checkpoint has no id.
  const snapshotId = row.id === null ? '' : uuidText(row.id);
  return { snapshotId, state: read.state, ref, row };
}

/** Where the state of a row lies; `undefined` while it lies nowhere. */
export function locationOfRow(
  row: LocatedRow,
  { view, custom, artifacts }: StateRead,
  database: string,
): Location | undefined {
  if (row.at_row_id === null) return undefined;
  const isListed = row.at_idx !== null;
  const isRewritten = !isListed && row.at_view !== null && row.at_view !== row.at_parent_view;
  const [own] = parseLineage(row.lineage);
  const common = isRewritten ? (own?.common ?? undefined) : undefined;
  const state = { view, viewRowId: row.at_view, common, custom, artifacts };
  return locationAt(row.at_row_id, { isListed, parent: row.at_parent }, state, database);
}
