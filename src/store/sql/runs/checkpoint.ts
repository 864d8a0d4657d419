import { isSnapshotId } from '../../../protocol/ids.ts';
import type { Checkpointed, PartialWrite, RunRef, RunSupport } from '../../contract/store.ts';
import { dropCheckpoint, noteSnapshot } from '../content/gc-queue.ts';
import { type HomeRow, homeOf, snapshotPlace } from '../content/places.ts';
import { first, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { locationAt } from '../history/location.ts';
import { type FoundBase, isStillThere, planState } from '../history/plan-state.ts';
import type { StateContext, StateRows } from '../history/state-rows.ts';
import { addMemory } from '../memory.ts';
import { placeValues } from '../snapshots/snapshot-row.ts';
import { addSpend } from '../spend.ts';
import { uuidBytes } from '../values/bytes.ts';
import { code, toRunUsage, toTotals, toUsage } from '../values/codes.ts';
import { journal } from '../values/journal.ts';
import { insertSnapshot, pointersOf, updateSnapshot } from './commit.ts';
import { appendEvents } from './events.ts';
import { noCrashes, openRun } from './open-run.ts';

export type CheckpointWrite = Parameters<RunSupport['checkpoint']>[1];

const updatePartial = statement(
  'partial_attach',
  `UPDATE @snapshots SET branch = $2, branch_length = $3, view = $4, length = $5, custom = $6, artifacts = $7,
     state_hash = $8, updated_at = $9, usage = COALESCE($10, usage), totals = COALESCE($11, totals), partial = NULL
   WHERE row_id = $1`,
);
const updateRun = statement(
  'checkpoint_run',
  `UPDATE @runs SET checkpoint = $2, inputs_done = $3, mid_turn = $4, ${noCrashes} WHERE session = $1`,
);
const updateBranchEnd = statement(
  'checkpoint_branch_end',
  'UPDATE @sessions SET branch_end = $2 WHERE row_id = $1',
);

const countInbox = statement<{ messages: number }>(
  'checkpoint_inbox',
  `SELECT CAST(count(*) AS INTEGER) AS messages FROM @journal WHERE run = $1 AND attempt = ${journal.inbox}`,
);

/** Keeps the state that a run has reached: see {@link RunSupport.checkpoint}. */
export function* checkpoint(
  ref: RunRef,
  write: CheckpointWrite,
  rows: StateRows,
  context: StateContext,
): Plan<Checkpointed> {
  const held = yield* openRun(ref, rows.base);
  const before = held.checkpoint === held.base ? null : held.checkpoint;
  const goesOn = before !== null && rows.base?.snapshot === before;
  const parent = held.base_lineage;
  const spot = {
    session: held.session,
    branchEnd: held.branch_end,
    parent,
    replaces: goesOn ? before : null,
    hasBase: isStillThere(rows.base, held),
    mayGoOn: true,
  };
  const placed = yield* planState(write, rows, spot, context);
  const place = snapshotPlace('state_hash', homeOf(held), null);
  const hash = context.cipher.sealHash(write.stateHash, place);
  const { turn } = held;
  const what = [turn, code.turnEnd, code.pending, null, hash, ...usedValues(write), null] as const;
  const kept = pointersOf(placed, rows);
  let rowId: number;
  if (goesOn) {
    rowId = before;
    yield* noteSnapshot(rowId, kept);
    yield* run(updateSnapshot, rowId, ...what, ...placeValues(placed), parent);
  } else {
    const where = [null, held.session, parent, null, null] as const;
    const made = yield* one(insertSnapshot, ...where, ...what, ...placeValues(placed));
    yield* dropCheckpoint(before, kept);
    rowId = made.row_id;
  }
  if (write.events !== undefined) yield* appendEvents(held, write.events, context);
  yield* addSpend(write.spend);
  yield* addMemory(held, ref.runId, write.memory, context.cipher);
  yield* run(updateBranchEnd, held.session, rowId);
  yield* run(updateRun, held.session, rowId, write.inputsDone, write.midTurn ? 1 : 0);
  const location = locationAt(rowId, { isListed: false, parent }, placed, context.database);
  const inbox = held.has_steps === 1 ? (yield* one(countInbox, held.id)).messages : 0;
  return { snapshotId: ref.runId, state: write.state, ref: location, inbox };
}

function usedValues({ used }: CheckpointWrite): readonly [string | null, string | null] {
  return used === undefined ? [null, null] : [toRunUsage(used), toTotals(used.totals)];
}

interface AbortedRow extends HomeRow, FoundBase {
  readonly now: number;
  readonly row_id: number;
  readonly session: number;
  readonly branch_end: number | null;
  readonly parent: number | null;
  readonly branch: number | null;
  readonly branch_length: number;
}

const selectAborted = readUnderLock<AbortedRow>(
  'partial_aborted',
  (d) => `
    SELECT ${d.now} AS now, s.row_id, s.session, z.owner, z.agent, z.id AS session_id, z.branch_end, s.parent, s.branch_length, s.branch,
      f.branch AS from_branch, f.branch_length AS from_branch_length
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session LEFT JOIN @snapshots f ON f.row_id = $3
    WHERE s.id = $1 AND s.status = ${code.aborted} AND s.partial = $2 ${d.lock('s, z')}`,
);

/** Puts the partial state on an aborted snapshot, once: see {@link RunSupport.attachPartial}. */
export function* attachPartial(
  { runId, attempt }: RunRef,
  write: PartialWrite,
  rows: StateRows,
  context: StateContext,
): Plan<boolean> {
  if (!isSnapshotId(runId)) return false;
  const from = rows.base?.snapshot ?? null;
  const row = yield* first(selectAborted, uuidBytes(runId), attempt, from);
  if (row === undefined) return false;
  const grown = onRow(rows, row);
  const spot = {
    session: row.session,
    branchEnd: row.branch_end,
    parent: row.parent,
    replaces: row.row_id,
    hasBase: grown !== rows || isStillThere(rows.base, row),
    mayGoOn: grown !== rows,
  };
  const placed = yield* planState(write, grown, spot, context);
  const place = snapshotPlace('state_hash', homeOf(row), runId);
  const hash = context.cipher.sealHash(write.stateHash, place);
  const used = [toUsage(write.usage), toTotals(write.totals)] as const;
  yield* noteSnapshot(row.row_id, pointersOf(placed, rows));
  yield* run(updatePartial, row.row_id, ...placeValues(placed), hash, row.now, ...used);
  return true;
}

// The checkpoint that the state grew from has gone over into the aborted row.
function onRow(
  rows: StateRows,
  { row_id: rowId, parent, branch, branch_length: to }: AbortedRow,
): StateRows {
  const { base } = rows;
  if (base?.view === undefined || base.snapshot === parent) return rows;
  if (base.view.branch !== branch || base.view.to !== to) return rows;
  return { ...rows, base: { ...base, snapshot: rowId, lineage: parent } };
}
