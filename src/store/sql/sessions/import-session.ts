import type { SessionInfo } from '../../../protocol/session.ts';
import { type ImportedSession, type ImportRow, renewIds } from '../../../session/import-session.ts';
import type { Scope, StateBase } from '../../contract/store.ts';
import { notFound, sessionExists } from '../../rules/errors.ts';
import { sealed } from '../content/open-json.ts';
import { type Home, homeIn, sessionPlace, snapshotPlace } from '../content/places.ts';
import { one, type Plan, run, statement } from '../database/query.ts';
import { locationAt } from '../history/location.ts';
import { planState, type StatePosition } from '../history/plan-state.ts';
import { type StateContext, stateRows } from '../history/state-rows.ts';
import { createSession, isUsed } from '../runs/claim.ts';
import {
  outcomeColumns,
  outcomeValues,
  placeValues,
  stateColumns,
} from '../snapshots/snapshot-row.ts';
import { uuidBytes } from '../values/bytes.ts';
import { findSession, toSessionInfo } from './sessions.ts';

const insertSnapshot = statement<{ row_id: number }>(
  'import_snapshot',
  `INSERT INTO @snapshots(id, session, parent, idx, ${outcomeColumns}, ${stateColumns}, created_at, updated_at, label)
   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
   RETURNING row_id`,
);
const updateSession = statement(
  'import_session',
  `UPDATE @sessions SET head = $2, branch_end = $3, next_index = $4, title = $5, metadata = $6, forked_from = $7,
     created_at = $8, updated_at = $9
   WHERE row_id = $1`,
);

/** Puts a session that was read from a document into the tables. */
export function* importSession(
  scope: Scope,
  read: ImportedSession,
  sessionId: string,
  newId: () => string,
  context: StateContext,
): Plan<SessionInfo> {
  if ((yield* findSession(scope, sessionId)) !== undefined) throw sessionExists(sessionId);
  const imported = (yield* isTaken(read)) ? renewIds(read, newId) : read;
  const { session, snapshots } = imported;
  const rowId = yield* createSession(scope, sessionId, session);
  const home = homeIn(scope, sessionId);
  const bases = new Map<string, Inserted>();
  let branchEnd: number | null = null;
  for (const row of snapshots) {
    const parent = bases.get(row.snapshot.parentId ?? '');
    const place = { session: rowId, branchEnd, home };
    const inserted: Inserted = yield* insertRow(place, row, parent, context);
    bases.set(row.snapshot.snapshotId, inserted);
    if (row.snapshot.status === 'succeeded') branchEnd = inserted.rowId;
  }
  const { headId, title = null, metadata = null, forkedFrom } = session;
  const head = headId === undefined ? null : (bases.get(headId)?.rowId ?? null);
  const indexes = snapshots.map((row) => row.snapshot.index);
  const { cipher } = context;
  yield* run(
    updateSession,
    rowId,
    head,
    branchEnd,
    Math.max(-1, ...indexes) + 1,
    sealed(title, sessionPlace('title', home), cipher),
    sealed(metadata, sessionPlace('metadata', home), cipher),
    forkedFrom === undefined ? null : JSON.stringify(forkedFrom),
    Date.parse(session.createdAt),
    Date.parse(session.updatedAt),
  );
  const info = yield* findSession(scope, sessionId);
  if (info === undefined) throw notFound('session', sessionId);
  return toSessionInfo(info, cipher);
}

function* isTaken({ snapshots }: ImportedSession): Plan<boolean> {
  for (const { snapshot } of snapshots) {
    if (yield* isUsed(uuidBytes(snapshot.snapshotId))) return true;
  }
  return false;
}

interface ImportPlace extends Pick<StatePosition, 'session' | 'branchEnd'> {
  readonly home: Home;
}

interface Inserted extends StateBase {
  readonly rowId: number;
}

function* insertRow(
  { session, branchEnd, home }: ImportPlace,
  { snapshot, totals, state }: ImportRow,
  parent: Inserted | undefined,
  context: StateContext,
): Plan<Inserted> {
  const write = parent === undefined ? { state } : { state, base: parent };
  const spot = {
    session,
    branchEnd,
    parent: parent?.rowId ?? null,
    replaces: null,
    hasBase: parent !== undefined,
    mayGoOn: snapshot.status === 'succeeded',
  };
  const placed = yield* planState(write, stateRows(write, context), spot, context);
  const labelPlace = snapshotPlace('label', home, snapshot.snapshotId);
  const { row_id: rowId } = yield* one(
    insertSnapshot,
    uuidBytes(snapshot.snapshotId),
    session,
    parent?.rowId ?? null,
    snapshot.index < 0 ? null : snapshot.index,
    ...outcomeValues({ ...snapshot, totals }, home, context),
    ...placeValues(placed),
    Date.parse(snapshot.createdAt),
    Date.parse(snapshot.updatedAt),
    sealed(snapshot.label ?? null, labelPlace, context.cipher),
  );
  const ref = locationAt(rowId, { isListed: true, parent: null }, placed, context.database);
  return { rowId, snapshotId: snapshot.snapshotId, state, ref };
}
