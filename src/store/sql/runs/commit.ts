import { isWaymarkError, type WaymarkError } from '../../../core/error.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import type { Committed, CommitWrite, RunRef } from '../../contract/store.ts';
import { type CommitDecision, CommittedTurn, decideCommit } from '../../rules/decide-commit.ts';
import { storeFault } from '../../rules/errors.ts';
import { writtenSnapshot } from '../../rules/saved-snapshot.ts';
import { dropCheckpoint, dropSnapshot, type Pointers } from '../content/gc-queue.ts';
import { sealed } from '../content/open-json.ts';
import { homeOf, sessionPlace } from '../content/places.ts';
import { changes, newRow, parameters } from '../database/dialect.ts';
import type { Driver } from '../database/driver.ts';
import { first, insertion, one, type Plan, Refused, run, statement } from '../database/query.ts';
import { locationAt } from '../history/location.ts';
import { planState, type StatePosition, type StoredState } from '../history/plan-state.ts';
import { type StateContext, type StateRows, stateRows } from '../history/state-rows.ts';
import { addMemory } from '../memory.ts';
import { isOnActivePath, listHead } from '../snapshots/active-path.ts';
import { locateByRowId, locationOfRow, metadataOf, stateOf } from '../snapshots/locate.ts';
import {
  outcomeColumns,
  outcomeValues,
  placeValues,
  stateColumns,
} from '../snapshots/snapshot-row.ts';
import { addSpend } from '../spend.ts';
import { iso, uuidBytes } from '../values/bytes.ts';
import { toStatus } from '../values/codes.ts';
import {
  type CommitRow,
  expectUnchanged,
  lastEventOf,
  parentIdOf,
  type ReadCommit,
  readCommit,
  type UnchangedRow,
} from './commit-facts.ts';
import { bury } from './dead-runs.ts';
import { removeRun } from './end-run.ts';
import { appendAfter } from './events.ts';
import { writeRest } from './inbox.ts';
import type { RunContext } from './known-runs.ts';
import { noCrashes } from './open-run.ts';
import { endRequests } from './requests.ts';

interface SnapshotTimes {
  readonly created_at: number;
  readonly updated_at: number;
}

export const insertSnapshot = insertion<SnapshotTimes>(
  'commit_snapshot',
  (d) =>
    `INSERT INTO @snapshots${newRow(d, 'snapshots', {
      ...parameters(['id', 'session', 'parent', 'idx']),
      created_at: `COALESCE((SELECT r.created_at FROM @runs r WHERE r.session = $5), ${d.now})`,
      updated_at: d.now,
      ...parameters(`${outcomeColumns}, ${stateColumns}`.split(', '), 6),
    })}`,
  'created_at',
  'updated_at',
);
export const updateSnapshot = statement<SnapshotTimes>(
  'commit_update_snapshot',
  (d) => `
    UPDATE @snapshots SET updated_at = ${d.now}, turn = $2, event = $3, status = $4, finish = $5,
      state_hash = $6, usage = $7, totals = $8, error = $9, branch = $10, branch_length = $11, view = $12,
      length = $13, custom = $14, artifacts = $15, parent = $16
    WHERE row_id = $1 RETURNING created_at, updated_at`,
);
export const updateSession = statement(
  'commit_session',
  (d) =>
    `UPDATE @sessions SET ${changes(d, 'sessions', {
      ...parameters(['head', 'branch_end', 'next_index'], 2),
      updated_at: d.now,
    })} WHERE row_id = $1`,
);
const updateRun = statement(
  'commit_run',
  `UPDATE @runs SET base = $2, checkpoint = $2, inputs_done = $3, mid_turn = $4, ${noCrashes}
   WHERE session = $1`,
);

/** Gives a session a title unless it has one. */
export const nameUntitled = statement(
  'session_default_title',
  'UPDATE @sessions SET title = $2 WHERE row_id = $1 AND title IS NULL',
);

/** The statements that only a commit has. */
export const commitStatements = {
  frequent: [insertSnapshot, updateSession],
  others: [updateSnapshot, updateRun, nameUntitled],
};

/** The result of a commit, and whether something may have become unreachable. */
export interface CommitResult {
  readonly committed: Committed;
  readonly discards: boolean;
}

type Decision = CommitDecision<number>;

/** How often a commit is decided again because another write came first. */
const attempts = 50;

/**
 * Writes a snapshot under a run: see {@link RunSupport.commit}. It is decided by what the process knows of the run, or else by what it
 * reads, and written if that still holds.
 */
export async function commit(
  db: Driver,
  ref: RunRef,
  write: CommitWrite,
  context: RunContext,
): Promise<CommitResult> {
  // The hashes of content depend on a secret that the open store has.
  await db.open();
  const { known, cipher } = context;
  const rows = stateRows(write, context);
  let read = known.find(ref, write, rows.base);
  known.forget(ref.runId);
  for (let left = attempts; ; left--) {
    read ??= await db.read(() => readCommit(ref, write, rows.base, cipher));
    const facts = read;
    let decision: Decision | undefined;
    try {
      decision = decideCommit(facts.facts, write);
      const decided = { rows, read: facts, decision };
      const plan = () => writeCommit(ref, write, decided, context);
      const { written, rowId, describe } = await db.write(plan, { guarded: 'commit' });
      known.continued(ref, facts, write, decision, rowId);
      const isOrphaned = await orphans(db, facts.row, decision);
      const committed = new CommittedTurn(written, () => describe(isOrphaned));
      const discards = decision.replaces !== null || facts.row.checkpoint !== null;
      return { committed, discards };
    } catch (error) {
      // A refusal counts only if its facts were read.
      const isExpected = decision === undefined && facts.isExpected === true;
      if (!isExpected && !(error instanceof Refused)) throw error;
      if (!isExpected && left === 0) throw overtaken(facts.row.session_id, error);
    }
    read = undefined;
  }
}

function overtaken(sessionId: string, cause: unknown): WaymarkError {
  return storeFault(
    'UNAVAILABLE',
    `Other writes to session "${sessionId}" came first ${attempts} times. Try again.`,
    { cause, details: { written: false } },
  );
}

interface Decided {
  readonly rows: StateRows;
  readonly read: ReadCommit;
  readonly decision: Decision;
}

/** Writes what was decided, if the facts still hold. */
function* writeCommit(
  ref: RunRef,
  write: CommitWrite,
  { rows, read, decision }: Decided,
  context: StateContext,
): Plan<{
  readonly written: Committed['base'];
  readonly rowId: number;
  readonly describe: (orphaned: boolean) => Snapshot;
}> {
  const { row } = read;
  const { session } = row;
  const held = { ...row, id: uuidBytes(ref.runId) };
  const seen = yield* expectUnchanged(ref, write, rows.base, read);
  const placed = yield* planState(write, rows, positionOf(row, decision, rows), context);
  if (decision.listHeadAs !== null) yield* run(listHead, session);
  const { rowId, times } = yield* writeRow(held, seen, write, placed, decision, context);
  const kept = pointersOf(placed, rows);
  if (decision.replaces !== null) yield* dropSnapshot(decision.replaces, kept);
  if (decision.dropsCheckpoint) yield* dropCheckpoint(row.checkpoint, kept);
  const { events = [] } = write;
  if (events.length > 0) yield* appendAfter(held, events, lastEventOf(row), context);
  const head = decision.movesHead ? rowId : row.head;
  const branchEnd = decision.movesBranchEnd ? rowId : row.branch_end;
  yield* run(updateSession, session, head, branchEnd, decision.nextIndex);
  if (write.defaultTitle !== undefined) {
    const place = sessionPlace('title', homeOf(row));
    const title = sealed(write.defaultTitle, place, context.cipher);
    yield* run(nameUntitled, session, title);
  }
  yield* endRequests(held.id, write.requests, context.cipher);
  yield* addSpend(write.spend);
  yield* addMemory(row, write.snapshotId, write.memory, context.cipher);
  if (write.deadLetter === true) yield* run(bury, session);
  const { run: after } = decision;
  if (after === 'ends') {
    if (read.left !== undefined) yield* writeRest(read.left, context.cipher);
    const hasEvents = row.last_event !== null || events.length > 0;
    yield* removeRun({ ...held, has_events: hasEvents ? 1 : 0 });
  } else if (after !== 'stays') {
    yield* run(updateRun, session, rowId, after.inputsDone, after.midTurn ? 1 : 0);
  }
  const place = { isListed: decision.index !== null, parent: decision.parent };
  const location = locationAt(rowId, place, placed, context.database);
  return {
    written: { snapshotId: write.snapshotId, state: write.state, ref: location },
    rowId,
    describe: (orphaned) =>
      writtenSnapshot(write, {
        createdAt: iso(times.created_at),
        updatedAt: iso(times.updated_at),
        sessionId: row.session_id,
        parentId: parentIdOf(read, decision.parent, write),
        index: decision.index ?? -1,
        orphaned,
      }),
  };
}

/** Where the state of a commit is to be put. */
function positionOf(
  { session, base, checkpoint, branch_end, has_base }: CommitRow,
  decision: Decision,
  rows: StateRows,
): StatePosition {
  // The run's own checkpoint, when the state grew from it and takes over its rows.
  const takesOver =
    decision.dropsCheckpoint && checkpoint !== base && rows.base?.snapshot === checkpoint;
  return {
    session,
    branchEnd: branch_end,
    parent: decision.parent,
    replaces: takesOver ? checkpoint : decision.replaces,
    hasBase: has_base === 1,
    mayGoOn: decision.movesBranchEnd,
  };
}

/** Pointers of the rows before that are still needed. A rewritten history may need less of its branch. */
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

/** Adds the row of a snapshot, or fills in that of a detached run. */
function* writeRow(
  held: CommitRow,
  { now, created_at }: UnchangedRow,
  write: CommitWrite,
  placed: StoredState,
  { row, parent, index, createdAt }: Decision,
  context: StateContext,
): Plan<{ readonly rowId: number; readonly times: SnapshotTimes }> {
  const values = [...outcomeValues(write, homeOf(held), context), ...placeValues(placed)];
  if (row !== null) {
    const times = yield* one(updateSnapshot, row, ...values, parent);
    return { rowId: row, times };
  }
  const made = yield* one(
    insertSnapshot,
    uuidBytes(write.snapshotId),
    held.session,
    parent,
    index,
    createdAt === 'claim' ? held.session : null,
    ...values,
  );
  const times = { created_at: createdAt === 'claim' ? created_at : now, updated_at: now, ...made };
  return { rowId: made.row_id, times };
}

/** Whether a snapshot that did not succeed hangs on one that is not on the active path. */
async function orphans(
  db: Driver,
  { session, head }: CommitRow,
  { movesBranchEnd, parent }: Decision,
): Promise<boolean> {
  if (movesBranchEnd || parent === null || parent === head) return false;
  return !(await db.read(() => isOnActivePath(session, parent)));
}

const selectWritten = statement<{ row_id: number }>(
  'doubt_written',
  'SELECT row_id FROM @snapshots WHERE id = $1 AND status = $2',
);

/** Commits with an unknown outcome, because the connection broke before the answer. */
export class AmbiguousCommits {
  readonly #open = new Set<string>();

  /** Notes the outcome of a commit that failed. Gives whether it is one that may have been done before. */
  hasDoubt(ref: RunRef, write: CommitWrite, error: unknown): boolean {
    const key = `${ref.runId} ${ref.attempt} ${write.snapshotId}`;
    if (!isWaymarkError(error)) return false;
    if (error.status === 'UNAVAILABLE') this.#open.add(key);
    const isRefused = error.status === 'ABORTED' || error.status === 'ALREADY_EXISTS';
    return isRefused && this.#open.delete(key);
  }
}

/** The result of a commit that was done, though its answer was lost; `undefined` when it was not. */
export function* alreadyCommitted(
  write: CommitWrite,
  context: StateContext,
): Plan<Committed | undefined> {
  const id = uuidBytes(write.snapshotId);
  const found = yield* first(selectWritten, id, toStatus(write.status));
  const row = found && (yield* first(locateByRowId, found.row_id));
  if (row === undefined) return undefined;
  const read = yield* stateOf(row, context, { marked: false });
  const snapshot = metadataOf(row, context);
  if (snapshot.stateHash !== write.stateHash) return undefined;
  const ref = locationOfRow(row, read, context.database);
  return { base: { snapshotId: write.snapshotId, state: write.state, ref }, snapshot };
}
