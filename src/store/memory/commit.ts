import { WaymarkError } from '../../core/error.ts';
import type { Usage } from '../../protocol/turn.ts';
import { type Committed, type CommitWrite, isWithinTurn, type RunRef } from '../contract/store.ts';
import { CommittedTurn } from '../rules/committed.ts';
import { taken } from '../rules/errors.ts';
import { checkSnapshotId } from '../rules/ids.ts';
import { spentInTurn } from '../rules/totals.ts';
import { endRun, hangOnStart, noCrashes } from './claim.ts';
import { bury } from './dead-runs.ts';
import { appendTo } from './events.ts';
import { toMetadata } from './reading.ts';
import { endRequests } from './requests.ts';
import {
  checkUnused,
  currentRun,
  list,
  moveHead,
  nearestListed,
  type RunRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

/** Writes a snapshot under a run: see {@link RunSupport.commit}. */
export function commit(tables: Tables, ref: RunRef, write: CommitWrite): Committed {
  const run = currentRun(tables, ref);
  checkWrite(tables, run, write);
  const base = baseOf(tables, run, write.parentId);
  if (write.events !== undefined) appendTo(tables, run, write.events);
  const row = run.row?.id === write.snapshotId ? run.row : createRow(tables, run, base, write);
  if (row === run.row && write.status !== 'succeeded') hangOnStart(run);
  fill(row, write, tables.clock.now());
  if (row.status === 'succeeded') advance(tables, run, row, write);
  if (row.index < 0 && write.listed !== false) list(row);
  row.session.updatedAt = row.updatedAt;
  if (write.deadLetter === true) bury(tables, run);
  endRequests(tables, run, write.requests);
  if (write.end) endRun(tables, run);
  else if (row.status === 'succeeded') goOn(run, row, write);
  tables.emitter.emit(row.id);
  // The caller's state, which is awake, and not the row's.
  const saved = { snapshotId: row.id, state: write.state, ref: row };
  return new CommittedTurn(saved, () => toMetadata(row, row.updatedAt));
}

/**
 * Moves the head on, once the turn has ended: a snapshot within it leaves the head where it is, so that a turn that fails
 * leaves the session where it was. The unlisted state that the run goes on from has then had its time.
 */
function advance(tables: Tables, run: RunRow, row: SnapshotRow, write: CommitWrite): void {
  const { session } = row;
  const { head } = session;
  const isStart = head !== undefined && (head === run.start || head.id === write.parentId);
  if (isWithinTurn(write)) {
    // It will be left by the end of the turn, and has its place in the list before what comes behind it.
    if (head !== undefined && head.index < 0 && !isStart) list(head);
    return;
  }
  if (isStart && head.index < 0) {
    tables.snapshots.delete(head.id);
    session.head = undefined;
  }
  moveHead(session, row);
}

/** A snapshot in the middle of a run: the run hangs on it from now on, and would be started over from it. */
function goOn(run: RunRow, row: SnapshotRow, { state, usage, toolCalls }: CommitWrite): void {
  const midTurn = row.event === 'toolIterationEnd';
  const done = run.checkpoint?.inputsDone ?? 0;
  run.base = row;
  run.crashes = noCrashes;
  run.checkpoint = {
    state,
    stateHash: row.stateHash,
    inputsDone: midTurn ? done : done + 1,
    midTurn,
    used: spentInTurn(usage, toolCalls),
  };
}

function checkWrite(tables: Tables, run: RunRow, write: CommitWrite): void {
  if (write.listed === false && write.status !== 'succeeded') {
    throw new WaymarkError('INVALID_ARGUMENT', `A ${write.status} snapshot is always listed.`);
  }
  if (run.row?.id === write.snapshotId && write.end) return;
  if (run.row !== undefined && (write.end || run.row.id === write.snapshotId)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `A detached run ends with its own snapshot "${run.row.id}".`,
    );
  }
  checkSnapshotId(write.snapshotId);
  if (write.snapshotId !== run.id) checkUnused(tables, write.snapshotId);
  else if (tables.snapshots.has(run.id)) {
    throw taken(run.id);
  }
}

function baseOf(
  tables: Tables,
  run: RunRow,
  parentId: string | undefined,
): SnapshotRow | undefined {
  if (parentId === undefined) return undefined;
  const row = tables.snapshots.get(parentId);
  if (row?.session === run.session && row.status === 'succeeded') return row;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `Snapshot "${parentId}" is no succeeded snapshot of session "${run.session.id}", so nothing can go on from it.`,
  );
}

function createRow(
  tables: Tables,
  run: RunRow,
  base: SnapshotRow | undefined,
  write: CommitWrite,
): SnapshotRow {
  const row = tables.newRow({
    id: write.snapshotId,
    session: run.session,
    parent: nearestListed(base),
    index: -1,
    turnIndex: write.turnIndex,
    event: write.event,
    status: write.status,
    createdAt: write.snapshotId === run.id ? run.createdAt : tables.clock.now(),
    updatedAt: tables.clock.now(),
    state: write.state,
    stateHash: write.stateHash,
  });
  tables.snapshots.set(row.id, row);
  return row;
}

// Models that do not count leave an empty one with each turn.
const noUsage: Usage = Object.freeze({});

function isEmpty(usage: Usage): boolean {
  return Object.keys(usage).length === 0;
}

function fill(row: SnapshotRow, write: CommitWrite, now: number): void {
  row.turnIndex = write.turnIndex;
  row.event = write.event;
  row.status = write.status;
  row.state = write.state;
  row.stateHash = write.stateHash;
  row.updatedAt = now;
  if (write.finishReason !== undefined) row.finishReason = write.finishReason;
  if (write.error !== undefined) row.error = write.error;
  if (write.usage !== undefined) row.usage = isEmpty(write.usage) ? noUsage : write.usage;
  if (write.totals !== undefined) row.totals = write.totals;
}
