import type { Snapshot } from '../../../protocol/snapshot.ts';
import type { Committed, CommitWrite, RunRef } from '../../contract/store.ts';
import { type CommitDecision, CommittedTurn, decideCommit } from '../../rules/decide-commit.ts';
import { accepted } from '../../rules/decision.ts';
import { type Home, homeOf } from '../content/places.ts';
import { insertion, one, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import { asLocation, type Location } from '../history/location.ts';
import {
  isStillThere,
  planState,
  type StatePosition,
  type StoredState,
} from '../history/plan-state.ts';
import type { StateContext, StateRows } from '../history/state-rows.ts';
import { dropCheckpoint, dropSnapshot, type Pointers } from '../retention/gc-queue.ts';
import { nameUntitled, sealTitle } from '../sessions/session-row.ts';
import { isOnActivePath, listHead } from '../snapshots/active-path.ts';
import { outcomeOf, placeValues, snapshotOf } from '../snapshots/snapshot-row.ts';
import { addSpend } from '../spend.ts';
import { uuidBytes } from '../values/bytes.ts';
import { compareCommit, type HeldCommit, parentIdOf, readCommit } from './commit-facts.ts';
import { bury } from './dead-runs.ts';
import { endRun, withEvents } from './end-run.ts';
import { appendEvents } from './events.ts';
import type { HeldPlace, KnownRun } from './held-runs.ts';
import { noCrashes } from './open-run.ts';
import { endRequests } from './requests.ts';

const insertSnapshot = insertion(
  'commit_snapshot',
  `INSERT INTO @snapshots(id, session, parent, idx, created_at, updated_at, turn, event, status, finish,
     state_hash, usage, totals, error, branch, branch_length, view, length, custom, artifacts)
   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
);
const updateOwn = statement(
  'commit_own_snapshot',
  `UPDATE @snapshots SET updated_at = $2, turn = $3, event = $4, status = $5, finish = $6,
     state_hash = $7, usage = $8, totals = $9, error = $10, branch = $11, branch_length = $12, view = $13,
     length = $14, custom = $15, artifacts = $16, parent = $17
   WHERE row_id = $1`,
);
const updateSession = statement(
  'commit_session',
  'UPDATE @sessions SET head = $2, branch_end = $3, next_index = $4, updated_at = $5 WHERE row_id = $1',
);
const updateRun = statement(
  'commit_run',
  `UPDATE @runs SET base = $2, checkpoint = $2, inputs_done = $3, mid_turn = $4, ${noCrashes}
   WHERE session = $1`,
);

/** The result of a commit, and whether something may have become unreachable. */
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
  known?: KnownRun | undefined,
): Plan<CommitResult> {
  const read =
    (known && (yield* compareCommit(ref, write, rows.base, known, context))) ??
    (yield* readCommit(ref, write, rows.base, context));
  const { facts, held } = read;
  const decision = accepted(decideCommit(facts, write));
  const position = positionOf(held, decision, rows, isStillThere(rows.base, held));
  const placed = yield* planState(write, rows, position, context);
  if (decision.listHeadAs !== null) yield* listHead(held.session);
  const rowId = yield* writeRow(held, write, placed, decision, context);
  const kept = pointersOf(placed, rows);
  if (decision.replaces !== null) yield* dropSnapshot(decision.replaces, kept);
  if (decision.dropsCheckpoint) yield* dropCheckpoint(held.checkpoint, kept);
  if (write.events !== undefined) yield* appendEvents(held, write.events, context);
  const head = decision.movesHead ? rowId : held.head;
  const branchEnd = decision.movesBranchEnd ? rowId : held.branch_end;
  yield* run(updateSession, held.session, head, branchEnd, decision.nextIndex, held.now);
  yield* nameSession(held, write.defaultTitle, context);
  yield* endRequests(held.id, write.requests, context.cipher);
  yield* addSpend(write.spend);
  if (write.deadLetter === true) yield* bury(held.session);
  yield* moveRun(held, write, { after: decision.run, rowId }, context);
  context.held.continued(read, write, decision, rowId);
  const orphaned = decision.movesBranchEnd ? false : yield* isOrphaned(held, decision.parent);
  const location = locationAfter(rowId, decision, placed, context);
  const saved = { snapshotId: write.snapshotId, state: write.state, ref: location };
  const describe = (): Snapshot =>
    snapshotOf(write, {
      createdAt: createdAt(held, decision),
      now: held.now,
      sessionId: held.session_id,
      parentId: parentIdOf(read, decision.parent, write),
      index: decision.index,
      orphaned,
    });
  return {
    committed: new CommittedTurn(saved, describe),
    discards: decision.replaces !== null || held.checkpoint !== null,
  };
}

type Decision = CommitDecision<number>;

/** Where the state of a commit is to be put. `hasBase`: what it grew from is still where it was. */
export function positionOf(
  { session, base, checkpoint, branch_end }: HeldPlace,
  decision: Decision,
  rows: StateRows,
  hasBase: boolean,
): StatePosition {
  // The run's own checkpoint, when the state grew from it and takes over its rows.
  const takesOver =
    decision.dropsCheckpoint && checkpoint !== base && rows.base?.snapshot === checkpoint;
  return {
    session,
    branchEnd: branch_end,
    parent: decision.parent,
    replaces: takesOver ? checkpoint : decision.replaces,
    hasBase,
    mayGoOn: decision.movesBranchEnd,
  };
}

/** Where the state of a commit lies, for the next write. */
export function locationAfter(
  rowId: number,
  { index, parent }: Pick<Decision, 'index' | 'parent'>,
  { view, viewRowId, common, custom, artifacts }: Omit<StoredState, 'length'>,
  { database }: StateContext,
): Location {
  const isListed = index !== null;
  return asLocation({
    database,
    snapshot: rowId,
    lineage: isListed ? rowId : parent,
    view,
    viewRowId,
    common: isListed ? undefined : common,
    custom,
    artifacts,
  });
}

/** Gives a session that has no title its first one. */
function* nameSession(
  held: HeldCommit,
  title: string | undefined,
  { cipher }: StateContext,
): Plan<void> {
  if (title !== undefined) {
    yield* run(nameUntitled, held.session, sealTitle(title, homeOf(held), cipher));
  }
}

function createdAt(held: HeldCommit, decision: Decision): number {
  return decision.createdAt === 'claim' ? held.created_at : held.now;
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

/** Adds the row of a snapshot, or fills in that of a detached run. Gives its row id. */
function* writeRow(
  held: HeldCommit,
  write: CommitWrite,
  placed: StoredState,
  decision: Decision,
  context: StateContext,
): Plan<number> {
  const home = homeOf(held);
  const { row, parent, index } = decision;
  if (row !== null) {
    const { turn, event, status, finish, hash, usage, totals, error } = outcomeOf(
      write,
      home,
      context,
    );
    const values = [turn, event, status, finish, hash, usage, totals, error];
    yield* run(updateOwn, row, held.now, ...values, ...placeValues(placed), parent);
    return row;
  }
  const { session, now } = held;
  const known = { session, home, parent, index, createdAt: createdAt(held, decision), now };
  return yield* insertCommitted(write, placed, known, context);
}

/** Columns of a snapshot's row that are not part of the write. */
interface RowOf {
  readonly session: number;
  readonly home: Home;
  readonly parent: number | null;
  readonly index: number | null;
  readonly createdAt: number;
  readonly now: number;
}

/** Adds the row of a snapshot and gives its number. */
function* insertCommitted(
  write: CommitWrite,
  placed: StoredState,
  { session, home, parent, index, createdAt, now }: RowOf,
  context: StateContext,
): Plan<number> {
  const { turn, event, status, finish, hash, usage, totals, error } = outcomeOf(
    write,
    home,
    context,
  );
  const values: SqlValue[] = [
    uuidBytes(write.snapshotId),
    session,
    parent,
    index,
    createdAt,
    now,
    turn,
    event,
    status,
    finish,
    hash,
    usage,
    totals,
    error,
    ...placeValues(placed),
  ];
  return (yield* one(insertSnapshot, ...values)).row_id;
}

/** Ends the run, or makes the snapshot what a takeover continues from. */
function* moveRun(
  held: HeldCommit,
  { events, steered }: CommitWrite,
  { after, rowId }: { readonly after: Decision['run']; readonly rowId: number },
  context: StateContext,
): Plan<void> {
  if (after === 'ends') yield* endRun(withEvents(held, events), context, steered);
  else if (after !== 'stays') {
    yield* run(updateRun, held.session, rowId, after.inputsDone, after.midTurn ? 1 : 0);
  }
}

function* isOrphaned(held: HeldCommit, parent: number | null): Plan<boolean> {
  if (parent === null || parent === held.head) return false;
  return !(yield* isOnActivePath(held.session, parent));
}
