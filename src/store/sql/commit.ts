import type { Snapshot } from '../../protocol/snapshot.ts';
import { checkSnapshotId, isSnapshotId } from '../../session/ids.ts';
import type { Committed, CommitWrite, RunRef } from '../../session/store.ts';
import { isOnActivePath, listHead } from './active-path.ts';
import { fromHex, iso, uuidBytes, uuidText } from './bytes.ts';
import { checkUnused } from './claim.ts';
import { code, toEvent, toFinish, toStatus, toTotals, toUsage } from './codes.ts';
import { endRun } from './end-run.ts';
import { appendEvents } from './events.ts';
import { invalid, precondition, taken } from './failures.ts';
import { asLocation } from './location.ts';
import { type OpenRun, openRun } from './open-run.ts';
import { type Placed, placeState, setTip } from './place.ts';
import { first, one, type Plan, run, type SqlValue, statement } from './query.ts';
import type { StateContext, StateRows } from './state-rows.ts';
import { dropCheckpoint, dropSnapshot, type Pointers } from './trash.ts';

interface BaseRow {
  readonly no: number;
  readonly id: Uint8Array;
  readonly session: number;
  readonly status: number;
  readonly idx: number | null;
  readonly parent: number | null;
  readonly parent_id: Uint8Array | null;
}

const selectBase = statement<BaseRow>(
  'commit_base',
  `SELECT s.no, s.id, s.session, s.status, s.idx, s.parent, p.id AS parent_id
   FROM @snapshots s LEFT JOIN @snapshots p ON p.no = s.parent WHERE s.id = $1`,
);
const selectWritten = statement<{ found: number }>(
  'commit_written',
  'SELECT 1 AS found FROM @snapshots WHERE id = $1',
);
const selectOwn = statement<{ idx: number; parent_id: Uint8Array | null; parent: number | null }>(
  'commit_own',
  `SELECT s.idx, s.parent, p.id AS parent_id FROM @snapshots s
   LEFT JOIN @snapshots p ON p.no = s.parent WHERE s.no = $1`,
);
const insertSnapshot = statement<{ no: number }>(
  'commit_snapshot',
  `INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, finish, branch, upto, view,
     length, custom, artifacts, state_hash, created_at, updated_at, usage, totals, error)
   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
   RETURNING no`,
);
const updateOwn = statement(
  'commit_own_snapshot',
  `UPDATE @snapshots SET turn = $2, event = $3, status = $4, finish = $5, branch = $6, upto = $7,
     view = $8, length = $9, custom = $10, artifacts = $11, state_hash = $12, updated_at = $13,
     usage = $14, totals = $15, error = $16
   WHERE no = $1`,
);
const updateSession = statement(
  'commit_session',
  'UPDATE @sessions SET head = $2, next_index = $3, updated_at = $4 WHERE no = $1',
);
const updateRun = statement(
  'commit_run',
  'UPDATE @runs SET base = $2, checkpoint = $2, inputs_done = $3, mid_turn = $4 WHERE no = $1',
);

/** Writes a snapshot under a run: see {@link RunSupport.commit}. */
export function* commit(
  ref: RunRef,
  write: CommitWrite,
  rows: StateRows,
  context: StateContext,
): Plan<Committed> {
  const held = yield* openRun(ref);
  yield* checkWrite(held, write);
  const base = yield* baseOf(held, write.parentId);
  const isOwn = held.own !== null && write.snapshotId === uuidText(held.id);
  const own = isOwn ? yield* one(selectOwn, held.own) : undefined;
  const isHead = write.status === 'succeeded';
  const replaced = isHead && base?.idx === null && base.no === held.head ? base : undefined;
  const isNew = own === undefined;
  const parent = isNew ? lineageOf(base) : own.parent;
  const replaces = bareCheckpoint(held, write, rows) ?? replaced?.no ?? null;
  const placed = yield* placeState(write, rows, { parent, replaces }, context);
  const leavesUnlisted =
    isHead && held.head !== null && held.head_idx === null && replaced === undefined;
  if (leavesUnlisted) yield* listHead(held.session);
  const nextIndex = held.next_index + (leavesUnlisted ? 1 : 0);
  const isListed = write.listed !== false;
  const index = isNew ? (isListed ? nextIndex : null) : own.idx;
  const row = { held, write, placed, index, context };
  const no = isNew ? yield* insert(row, parent) : yield* update(row);
  yield* setTip(placed.view.branch, no);
  const kept = pointersOf(placed, rows);
  if (replaced !== undefined) yield* dropSnapshot(replaced.no, kept);
  if (supersedes(write)) yield* dropCheckpoint(held.checkpoint, kept);
  if (write.events !== undefined) yield* appendEvents(held.no, write.events, context.vault);
  const counted = isNew && isListed ? nextIndex + 1 : nextIndex;
  yield* run(updateSession, held.session, isHead ? no : held.head, counted, held.now);
  yield* end(held, write, no);
  const parentId = isNew ? parentIdOf(base) : own.parent_id;
  const orphaned = isHead ? false : yield* isOrphaned(held, parent);
  const location = asLocation({
    database: context.database,
    snapshot: no,
    lineage: isListed ? no : parent,
    view: placed.view,
    viewNo: placed.viewNo,
    common: isListed ? undefined : placed.common,
    custom: placed.custom,
    artifacts: placed.artifacts,
  });
  const times = { createdAt: isReserved(held, write) ? held.created_at : held.now, now: held.now };
  return {
    base: { snapshotId: write.snapshotId, state: write.state, ref: location },
    snapshot: snapshotOf(write, {
      ...times,
      sessionId: held.session_id,
      parentId,
      index,
      orphaned,
    }),
  };
}

function isReserved(held: OpenRun, write: CommitWrite): boolean {
  return write.snapshotId === uuidText(held.id);
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
export function pointersOf({ view, custom, artifacts }: Placed, { rewrite }: StateRows): Pointers {
  return {
    branch: rewrite === undefined ? view.branch : null,
    custom: custom?.no ?? null,
    artifacts: artifacts?.no ?? null,
  };
}

function* checkWrite(held: OpenRun, write: CommitWrite): Plan<void> {
  checkCommit(write);
  const isOwn = held.own !== null && isReserved(held, write);
  if (isOwn && write.end) return;
  if (held.own !== null && (write.end || isOwn)) {
    throw invalid(`A detached run ends with its own snapshot "${uuidText(held.id)}".`);
  }
  if (!isReserved(held, write)) yield* checkUnused(write.snapshotId);
  else if ((yield* first(selectWritten, held.id)) !== undefined) throw taken(write.snapshotId);
}

/** Refuses a write that no run can make. */
export function checkCommit(write: CommitWrite): void {
  checkSnapshotId(write.snapshotId);
  if (write.listed === false && write.status !== 'succeeded') {
    throw invalid(`A ${write.status} snapshot is always listed.`);
  }
}

function* baseOf(held: OpenRun, parentId: string | undefined): Plan<BaseRow | undefined> {
  if (parentId === undefined) return undefined;
  const row = isSnapshotId(parentId) ? yield* first(selectBase, uuidBytes(parentId)) : undefined;
  if (row?.session === held.session && row.status === code.succeeded) return row;
  throw precondition(
    `Snapshot "${parentId}" is no succeeded snapshot of session "${held.session_id}", so nothing can go on from it.`,
  );
}

/** What a snapshot hangs on: never a state that is not listed. */
function lineageOf(base: BaseRow | undefined): number | null {
  return base === undefined ? null : base.idx === null ? base.parent : base.no;
}

function parentIdOf(base: BaseRow | undefined): Uint8Array | null {
  return base === undefined ? null : base.idx === null ? base.parent_id : base.id;
}

interface Row {
  readonly held: OpenRun;
  readonly write: CommitWrite;
  readonly placed: Placed;
  readonly index: number | null;
  readonly context: StateContext;
}

function* insert(
  { held, write, placed, index, context }: Row,
  parent: number | null,
): Plan<number> {
  const { view, viewNo, length, custom, artifacts } = placed;
  const { no } = yield* one(
    insertSnapshot,
    uuidBytes(write.snapshotId),
    held.session,
    parent,
    index,
    write.turnIndex,
    toEvent(write.event),
    toStatus(write.status),
    toFinish(write.finishReason),
    view.branch,
    view.upto,
    viewNo,
    length,
    custom?.no ?? null,
    artifacts?.no ?? null,
    fromHex(write.stateHash),
    isReserved(held, write) ? held.created_at : held.now,
    held.now,
    toUsage(write.usage),
    toTotals(write.totals),
    errorOf(write, context),
  );
  return no;
}

function* update({ held, write, placed, context }: Row): Plan<number> {
  const { view, viewNo, length, custom, artifacts } = placed;
  const no = held.own ?? 0;
  yield* run(
    updateOwn,
    no,
    write.turnIndex,
    toEvent(write.event),
    toStatus(write.status),
    toFinish(write.finishReason),
    view.branch,
    view.upto,
    viewNo,
    length,
    custom?.no ?? null,
    artifacts?.no ?? null,
    fromHex(write.stateHash),
    held.now,
    toUsage(write.usage),
    toTotals(write.totals),
    errorOf(write, context),
  );
  return no;
}

/** The error of a failed snapshot as it is stored. */
export function errorOf({ error }: CommitWrite, { vault }: StateContext): SqlValue {
  return error === undefined ? null : vault.seal(JSON.stringify(error));
}

/** Ends the run, or lets it hang on what was just written and start over from it. */
function* end(held: OpenRun, write: CommitWrite, no: number): Plan<void> {
  if (write.end) yield* endRun(held.no);
  else if (write.status === 'succeeded') {
    const isMidTurn = write.event === 'toolIterationEnd';
    const done = isMidTurn ? held.inputs_done : held.inputs_done + 1;
    yield* run(updateRun, held.no, no, done, isMidTurn ? 1 : 0);
  }
}

function* isOrphaned(held: OpenRun, parent: number | null): Plan<boolean> {
  if (parent === null || parent === held.head) return false;
  return !(yield* isOnActivePath(held.session, parent));
}

/** The metadata of what was written, without reading it back. */
export function snapshotOf(
  write: CommitWrite,
  known: {
    readonly createdAt: number;
    readonly now: number;
    readonly sessionId: string;
    readonly parentId: Uint8Array | null;
    readonly index: number | null;
    readonly orphaned: boolean;
  },
): Snapshot {
  const { finishReason, error, usage } = write;
  return {
    snapshotId: write.snapshotId,
    sessionId: known.sessionId,
    ...(known.parentId === null ? {} : { parentId: uuidText(known.parentId) }),
    index: known.index ?? -1,
    turnIndex: write.turnIndex,
    event: write.event,
    status: write.status,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(error === undefined ? {} : { error }),
    ...(usage === undefined ? {} : { usage }),
    createdAt: iso(known.createdAt),
    updatedAt: iso(known.now),
    stateHash: write.stateHash,
    orphaned: known.orphaned,
  };
}
