import { invalid } from '../../../core/error.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import { emptyState, fromPlainState, hashState } from '../../../session/session-state.ts';
import { type Scope, savedPendingTtl } from '../../contract/store.ts';
import { checkSaved } from '../../rules/saved-snapshot.ts';
import { noteSnapshot } from '../content/gc-queue.ts';
import { sealed } from '../content/open-json.ts';
import { homeIn, snapshotPlace } from '../content/places.ts';
import { first, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { planState } from '../history/plan-state.ts';
import { type StateContext, stateRows } from '../history/state-rows.ts';
import { checkUnused, createSession } from '../runs/claim.ts';
import { updateSession } from '../runs/commit.ts';
import { expireRun } from '../runs/end-run.ts';
import { checkFree, type HolderRow, holderColumns, type OpenRun } from '../runs/open-run.ts';
import { listHead } from '../snapshots/active-path.ts';
import { readBase, readSnapshot } from '../snapshots/locate.ts';
import { placeValues, sealNote } from '../snapshots/snapshot-row.ts';
import { uuidBytes } from '../values/bytes.ts';
import { code, toEvent, toFinish, toStatus, toUsage } from '../values/codes.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';
import { updateLabel } from './timeline.ts';

type Mutate = (current: Snapshot | undefined) => Snapshot | undefined;

/** A snapshot that is written again, and the branch of its state, if it has one. */
interface SavedRow {
  readonly row_id: number;
  readonly parent: number | null;
  readonly branch: number | null;
}

const lockId = statement('save_lock', (d) => d.lockName('$1'));
const selectRow = readUnderLock<SavedRow & { status: number; session_id: string }>(
  'save_find',
  (d) => `
    SELECT s.row_id, s.parent, s.status, s.branch, z.id AS session_id
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
    WHERE s.id = $1 AND z.owner = $2 AND z.agent = $3 ${d.lock('s')}`,
);
interface SessionRow
  extends HolderRow,
    Pick<OpenRun, 'head' | 'head_idx' | 'next_index' | 'branch_end'> {
  readonly row_id: number;
}

const selectSession = readUnderLock<SessionRow>(
  'save_session',
  (d) => `
    SELECT ${d.now} AS now, z.row_id, z.head, h.idx AS head_idx, z.next_index, z.branch_end, ${holderColumns}
    FROM @sessions z LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);
const selectParent = statement<{ row_id: number; session: number }>(
  'save_parent',
  'SELECT row_id, session FROM @snapshots WHERE id = $1',
);
const insertRow = statement<{ row_id: number }>(
  'save_insert',
  (d) => `
    INSERT INTO @snapshots(id, session, parent, turn, event, status, branch_length, length, state_hash, created_at,
      updated_at)
    VALUES($1, $2, $3, 0, 0, ${code.pending}, 0, 0, $4, ${d.now}, ${d.now}) RETURNING row_id`,
);
const updateRow = statement(
  'save_update',
  (d) => `
    UPDATE @snapshots SET turn = $2, event = $3, status = $4, finish = COALESCE($5, finish),
      error = COALESCE($6, error), usage = COALESCE($7, usage), ttl = $8, updated_at = ${d.now}
    WHERE row_id = $1`,
);
const updatePlace = statement(
  'save_state',
  `UPDATE @snapshots SET branch = $2, branch_length = $3, view = $4, length = $5, custom = $6, artifacts = $7,
     state_hash = $8
   WHERE row_id = $1`,
);
/** The atomic read-modify-write: see {@link SnapshotStore.saveSnapshot}. */
export function* saveSnapshot(
  scope: Scope,
  snapshotId: string,
  mutate: Mutate,
  context: StateContext,
): Plan<Snapshot | undefined> {
  const id = isSnapshotId(snapshotId) ? uuidBytes(snapshotId) : undefined;
  if (id !== undefined) yield* run(lockId, snapshotId);
  const row = id && (yield* first(selectRow, id, ...scopeKey(scope)));
  const current = yield* readSnapshot(scope, { snapshotId }, context);
  const next = mutate(current);
  if (next === undefined) return current;
  const isPending = row?.status === code.pending;
  checkSaved(scope, snapshotId, next, row && { sessionId: row.session_id, isPending });
  const session = yield* first(selectSession, ...scopeKey(scope), sessionKey(next.sessionId));
  if (session !== undefined) {
    checkFree(session, next.sessionId);
    // Its caller, if only slow, cannot write any more.
    if (session.run_session !== null) yield* expireRun(session.run_session, context);
  }
  const rowId =
    row === undefined || isPending ? yield* change(scope, row, next, context) : row.row_id;
  const { label = null } = next;
  yield* run(updateLabel, rowId, sealed(label, placeOf('label', scope, next), context.cipher));
  return yield* readSnapshot(scope, { snapshotId }, context);
}

/** Writes a new or a pending snapshot. Gives its row. */
function* change(
  scope: Scope,
  known: SavedRow | undefined,
  next: Snapshot,
  context: StateContext,
): Plan<number> {
  const before = known ?? (yield* insert(scope, next, context));
  const { row_id: rowId } = before;
  const session = yield* one(selectSession, ...scopeKey(scope), sessionKey(next.sessionId));
  if (next.state !== undefined || before.branch === null) {
    yield* writeState(scope, session, before, next, context);
  }
  const status = next.status === 'expired' ? 'pending' : next.status;
  yield* run(
    updateRow,
    rowId,
    next.turnIndex,
    toEvent(next.event),
    toStatus(status),
    toFinish(next.finishReason),
    sealNote(next, placeOf('error', scope, next), context.cipher),
    toUsage(next.usage),
    status === 'pending' ? savedPendingTtl : null,
  );
  const isHead = status === 'succeeded';
  const leaves = isHead && session.head !== null && session.head_idx === null;
  if (leaves) yield* run(listHead, session.row_id);
  const first = session.next_index + (leaves ? 1 : 0);
  yield* run(listOnce, rowId, first);
  const counted = known === undefined ? first + 1 : first;
  const head = isHead ? rowId : session.head;
  yield* run(updateSession, session.row_id, head, isHead ? rowId : session.branch_end, counted);
  return rowId;
}

const listOnce = statement(
  'save_list',
  'UPDATE @snapshots SET idx = $2 WHERE row_id = $1 AND idx IS NULL',
);

function* insert(scope: Scope, next: Snapshot, context: StateContext): Plan<SavedRow> {
  yield* checkUnused(next.snapshotId);
  const session = yield* first(selectSession, ...scopeKey(scope), sessionKey(next.sessionId));
  const parent = yield* parentOf(session?.row_id, next.parentId);
  const sessionRowId = session?.row_id ?? (yield* createSession(scope, next.sessionId));
  const hash = context.cipher.sealHash(hashState(emptyState), placeOf('state_hash', scope, next));
  const id = uuidBytes(next.snapshotId);
  const { row_id } = yield* one(insertRow, id, sessionRowId, parent, hash);
  return { row_id, parent, branch: null };
}

function* parentOf(session: number | undefined, parentId: string | undefined): Plan<number | null> {
  if (parentId === undefined) return null;
  const row = isSnapshotId(parentId) ? yield* first(selectParent, uuidBytes(parentId)) : undefined;
  if (row !== undefined && row.session === session) return row.row_id;
  throw invalid(`The parent "${parentId}" is no snapshot of the same session.`);
}

/** Writes the state as a difference to the parent's. */
function* writeState(
  scope: Scope,
  session: SessionRow,
  before: SavedRow,
  next: Snapshot,
  context: StateContext,
): Plan<void> {
  const state = next.state === undefined ? emptyState : fromPlainState(next.state);
  const base = before.parent === null ? undefined : yield* readBase(before.parent, context);
  const write = { state, ...(base === undefined ? {} : { base }) };
  const rows = stateRows(write, context);
  const spot = {
    session: session.row_id,
    branchEnd: session.branch_end,
    parent: before.parent,
    replaces: null,
    hasBase: base !== undefined,
    mayGoOn: next.status === 'succeeded',
  };
  const placed = yield* planState(write, rows, spot, context);
  const hash = context.cipher.sealHash(hashState(state), placeOf('state_hash', scope, next));
  yield* noteSnapshot(before.row_id);
  yield* run(updatePlace, before.row_id, ...placeValues(placed), hash);
}

function placeOf(
  column: Parameters<typeof snapshotPlace>[0],
  scope: Scope,
  { sessionId, snapshotId }: Snapshot,
): string {
  return snapshotPlace(column, homeIn(scope, sessionId), snapshotId);
}
