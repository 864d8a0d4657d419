import {
  type Committed,
  type CommitWrite,
  isWithinTurn,
  type RunRef,
} from '../../contract/store.ts';
import { invalid, precondition, taken } from '../../rules/errors.ts';
import { checkSnapshotId } from '../../rules/ids.ts';
import { type Home, homeOf } from '../content/places.ts';
import { insertion, one, type Plan, run, statement } from '../database/query.ts';
import { asLocation } from '../history/location.ts';
import { isStillThere, planState, type StoredState } from '../history/plan-state.ts';
import type { StateContext, StateRows } from '../history/state-rows.ts';
import { dropCheckpoint, dropSnapshot, type Pointers } from '../retention/gc-queue.ts';
import { isOnActivePath, listHead } from '../snapshots/active-path.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { outcomeValues, placeValues, snapshotOf } from './commit-row.ts';
import { bury } from './dead-runs.ts';
import { endRun, withEvents } from './end-run.ts';
import { appendEvents } from './events.ts';
import { hangOnStart } from './hang-on-start.ts';
import { noCrashes, type OpenRun, openRun } from './open-run.ts';
import { endRequests } from './requests.ts';

const selectOwn = statement<{ idx: number; parent: number | null; parent_id: Uint8Array | null }>(
  'commit_own',
  `SELECT s.idx, s.parent, p.id AS parent_id FROM @snapshots s
   LEFT JOIN @snapshots p ON p.row_id = s.parent WHERE s.row_id = $1`,
);
const insertSnapshot = insertion(
  'commit_snapshot',
  `INSERT INTO @snapshots(id, session, parent, idx, created_at, updated_at, turn, event, status, finish,
     state_hash, usage, totals, error, branch, branch_length, view, length, custom, artifacts)
   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
);
const insertSummed = insertion(
  'commit_snapshot_summed',
  `INSERT INTO @snapshots(id, session, parent, idx, created_at, updated_at, turn, event, status, finish,
     state_hash, usage, totals, error, branch, branch_length, view, length, custom, artifacts, sum)
   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
);
const updateOwn = statement(
  'commit_own_snapshot',
  `UPDATE @snapshots SET updated_at = $2, turn = $3, event = $4, status = $5, finish = $6,
     state_hash = $7, usage = $8, totals = $9, error = $10, branch = $11, branch_length = $12, view = $13,
     length = $14, custom = $15, artifacts = $16
   WHERE row_id = $1`,
);
const updateSession = statement(
  'commit_session',
  'UPDATE @sessions SET head = $2, branch_end = $3, next_index = $4, updated_at = $5 WHERE row_id = $1',
);
const updateSummed = statement(
  'commit_session_summed',
  `UPDATE @sessions SET head = $2, branch_end = $3, next_index = $4, updated_at = $5, place_sum = $6
   WHERE row_id = $1`,
);
const updateRun = statement(
  'commit_run',
  `UPDATE @runs SET base = $2, checkpoint = $2, inputs_done = $3, mid_turn = $4, ${noCrashes}
   WHERE session = $1`,
);

/** What a commit gave, and whether something may have become unreachable. */
export interface CommitResult {
  readonly committed: Committed;
  readonly discards: boolean;
}

/** Writes a snapshot under a run: see {@link RunSupport.commit}. */
export function* commit(
  ref: RunRef,
  write: CommitWrite,
  rows: StateRows,
  context: StateContext,
): Plan<CommitResult> {
  const { parentId, snapshotId } = write;
  const held = yield* openRun(ref, { from: rows.base, parentId, snapshotId });
  checkWrite(held, write);
  const succeeds = write.status === 'succeeded';
  if (isOwn(held, write) && !succeeds) yield* hangOnStart(held);
  const own = isOwn(held, write) ? yield* one(selectOwn, held.own_snapshot) : undefined;
  const line = own === undefined ? lineOf(held) : { parent: own.parent, id: own.parent_id };
  // A snapshot within a turn leaves the head where it is: a turn that fails leaves the session where it was.
  const moves = succeeds && !isWithinTurn(write);
  const isStart = held.head === held.start || held.head === held.parent_row_id;
  const replaced = moves && isStart && hasUnlistedHead(held) ? held.head : null;
  // A head that was not listed is listed before it is left.
  const leaves = succeeds && !isStart && hasUnlistedHead(held);
  const spot = {
    session: held.session,
    branchEnd: held.branch_end,
    parent: line.parent,
    replaces: bareCheckpoint(held, write, rows) ?? replaced,
    hasBase: isStillThere(rows.base, held),
    mayGoOn: succeeds,
  };
  const placed = yield* planState(write, rows, spot, context);
  const index = yield* indexOf(held, write, { leaves, own: own?.idx });
  const rowId =
    own === undefined
      ? yield* insertCommitted(
          write,
          placed,
          {
            session: held.session,
            home: homeOf(held),
            parent: line.parent,
            index: index.own,
            createdAt: createdAt(held, write),
            now: held.now,
          },
          context,
        )
      : yield* update(held, write, placed, context);
  const kept = pointersOf(placed, rows);
  if (replaced !== null) yield* dropSnapshot(replaced, kept);
  if (supersedes(write)) yield* dropCheckpoint(held.checkpoint, kept);
  if (write.events !== undefined) yield* appendEvents(held, write.events, context);
  const head = moves ? rowId : held.head;
  const branchEnd = succeeds ? rowId : held.branch_end;
  yield* moveSession(
    held.session,
    { head, branchEnd, nextIndex: index.next, now: held.now },
    context,
  );
  yield* endRequests(held.id, write.requests, context.cipher);
  yield* end(held, write, rowId);
  const orphaned = succeeds ? false : yield* isOrphaned(held, line.parent);
  const isListed = write.listed !== false;
  const location = asLocation({
    database: context.database,
    snapshot: rowId,
    lineage: isListed ? rowId : line.parent,
    view: placed.view,
    viewRowId: placed.viewRowId,
    common: isListed ? undefined : placed.common,
    custom: placed.custom,
    artifacts: placed.artifacts,
  });
  const snapshot = snapshotOf(write, {
    createdAt: createdAt(held, write),
    now: held.now,
    sessionId: held.session_id,
    parentId: line.id,
    index: index.own,
    orphaned,
  });
  return {
    committed: { base: { snapshotId, state: write.state, ref: location }, snapshot },
    discards: replaced !== null || held.checkpoint !== null,
  };
}

/** Says where a session stands after a commit. */
export function* moveSession(
  session: number,
  to: {
    readonly head: number | null;
    readonly branchEnd: number | null;
    readonly nextIndex: number;
    readonly now: number;
  },
  { sumOf }: StateContext,
): Plan<void> {
  const values = [to.head, to.branchEnd, to.nextIndex, to.now];
  if (sumOf === undefined) yield* run(updateSession, session, ...values);
  else yield* run(updateSummed, session, ...values, sumOf([to.head, to.branchEnd, to.nextIndex]));
}

/** Refuses a write that no run can make. */
export function checkCommit(write: CommitWrite): void {
  checkSnapshotId(write.snapshotId);
  if (write.listed === false && write.status !== 'succeeded') {
    throw invalid(`A ${write.status} snapshot is always listed.`);
  }
}

function checkWrite(held: OpenRun, write: CommitWrite): void {
  const ends = isOwn(held, write) && write.end;
  if (!ends && held.own_snapshot !== null && (write.end || isOwn(held, write))) {
    throw invalid(`A detached run ends with its own snapshot "${uuidText(held.id)}".`);
  }
  if (!ends && held.is_taken === 1) throw taken(write.snapshotId);
  const isGood = held.parent_session === held.session && held.parent_status === code.succeeded;
  if (write.parentId === undefined || isGood) return;
  throw precondition(
    `Snapshot "${write.parentId}" is no succeeded snapshot of session "${held.session_id}", so nothing can go on from it.`,
  );
}

/** Whether it is the row that a detached run listed. */
function isOwn(held: OpenRun, write: CommitWrite): boolean {
  return held.own_snapshot !== null && write.snapshotId === uuidText(held.id);
}

function createdAt(held: OpenRun, write: CommitWrite): number {
  return write.snapshotId === uuidText(held.id) ? held.created_at : held.now;
}

/** What a snapshot hangs on: never a state that is not listed. */
function lineOf(held: OpenRun): { readonly parent: number | null; readonly id: Uint8Array | null } {
  return held.parent_idx === null
    ? { parent: held.parent_parent, id: held.parent_parent_id }
    : { parent: held.parent_row_id, id: held.parent_id };
}

function hasUnlistedHead({ head, head_idx }: OpenRun): boolean {
  return head !== null && head_idx === null;
}

/** Whether a checkpoint before this write is of no use any more. */
function supersedes({ end, status }: CommitWrite): boolean {
  return end || status === 'succeeded';
}

/** The run's own checkpoint, when the state grew from it and takes over its rows. */
function bareCheckpoint(
  { checkpoint, base }: OpenRun,
  write: CommitWrite,
  rows: StateRows,
): number | null {
  const isBase = checkpoint !== base && rows.base?.snapshot === checkpoint;
  return isBase && supersedes(write) ? checkpoint : null;
}

/** What is still needed of what the rows before pointed to. A rewritten history may need less of its branch. */
export function pointersOf(
  { view, custom, artifacts }: StoredState,
  { rewrite }: StateRows,
): Pointers {
  return {
    branch: rewrite === undefined ? view.branch : null,
    custom: custom?.rowId ?? null,
    artifacts: artifacts?.rowId ?? null,
  };
}

/** The snapshot's index and the session's next one. */
function* indexOf(
  held: OpenRun,
  write: CommitWrite,
  known: { readonly leaves: boolean; readonly own?: number | undefined },
): Plan<{ readonly own: number | null; readonly next: number }> {
  if (known.leaves) yield* listHead(held.session);
  const next = held.next_index + (known.leaves ? 1 : 0);
  if (known.own !== undefined) return { own: known.own, next };
  return write.listed === false ? { own: null, next } : { own: next, next: next + 1 };
}

/** What the row of a snapshot says besides what is written. */
interface RowOf {
  readonly session: number;
  readonly home: Home;
  readonly parent: number | null;
  readonly index: number | null;
  readonly createdAt: number;
  readonly now: number;
}

/** Adds the row of a snapshot and gives its number. */
export function* insertCommitted(
  write: CommitWrite,
  placed: StoredState,
  { session, home, parent, index, createdAt, now }: RowOf,
  context: StateContext,
): Plan<number> {
  const outcome = outcomeValues(write, home, context);
  const values = [uuidBytes(write.snapshotId), session, parent, index, createdAt, now];
  const { sumOf } = context;
  if (sumOf === undefined) {
    return (yield* one(insertSnapshot, ...values, ...outcome, ...placeValues(placed))).row_id;
  }
  const [turn, event, status, finish, , usage, totals, error] = outcome;
  const { length } = placed;
  const told = [turn, event, status, finish, usage, totals, error, length];
  // A new snapshot has no label and no time to live.
  const sum = sumOf([parent, createdAt, now, ...told, null, null, null]);
  return (yield* one(insertSummed, ...values, ...outcome, ...placeValues(placed), sum)).row_id;
}

function* update(
  held: OpenRun,
  write: CommitWrite,
  placed: StoredState,
  context: StateContext,
): Plan<number> {
  const rowId = held.own_snapshot ?? 0;
  const values = [...outcomeValues(write, homeOf(held), context), ...placeValues(placed)];
  yield* run(updateOwn, rowId, held.now, ...values);
  return rowId;
}

/** Ends the run, or lets it hang on what was just written and start over from it. */
function* end(held: OpenRun, write: CommitWrite, rowId: number): Plan<void> {
  if (write.deadLetter === true) yield* bury(held.session);
  if (write.end) yield* endRun(withEvents(held, write.events));
  else if (write.status === 'succeeded') {
    const isMidTurn = write.event === 'toolIterationEnd';
    const done = isMidTurn ? held.inputs_done : held.inputs_done + 1;
    yield* run(updateRun, held.session, rowId, done, isMidTurn ? 1 : 0);
  }
}

function* isOrphaned(held: OpenRun, parent: number | null): Plan<boolean> {
  if (parent === null || parent === held.head) return false;
  return !(yield* isOnActivePath(held.session, parent));
}
