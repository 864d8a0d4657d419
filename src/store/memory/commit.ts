import { invalid } from '../../core/error.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Usage } from '../../protocol/turn.ts';
import { emptyState, fromPlainState, hashState } from '../../session/session-state.ts';
import {
  type Committed,
  type CommitWrite,
  type RunRef,
  type Scope,
  savedPendingTtl,
} from '../contract/store.ts';
import { type CommitDecision, CommittedTurn, decideCommit } from '../rules/decide-commit.ts';
import { taken } from '../rules/errors.ts';
import { checkSaved } from '../rules/saved-snapshot.ts';
import { spentInTurn } from '../rules/spend.ts';
import { displace, endRun, noCrashes } from './claim.ts';
import { appendTo } from './events.ts';
import { commitFacts } from './facts.ts';
import { addMemory } from './memories.ts';
import { readSnapshot, toMetadata, withState } from './reading.ts';
import { endRequests } from './requests.ts';
import { addSnapshot, createSessionRow, turnFieldsOf } from './rows.ts';
import { addSpend } from './spend.ts';
import {
  currentRun,
  findSession,
  findSnapshot,
  isUsed,
  leaveInbox,
  list,
  moveHead,
  type RunRow,
  type SessionRow,
  type SnapshotRow,
  stateOf,
  type Tables,
} from './tables.ts';

/** Writes a snapshot under a run: see {@link RunSupport.commit}. */
export function commit(tables: Tables, ref: RunRef, write: CommitWrite): Committed {
  const run = currentRun(tables, ref);
  const decision = decideCommit(commitFacts(tables, run, write), write);
  tables.files.check(run.session.scope, write.state, () => stateOf(run).state);
  const { defaultTitle } = write;
  if (defaultTitle !== undefined) run.session.title ??= defaultTitle;
  if (write.events !== undefined) appendTo(tables, run, write.events);
  const row = decision.row ?? createRow(tables, run, write, decision);
  row.parent = decision.parent ?? undefined;
  fill(row, write, tables.clock.now());
  moveSession(tables, row, decision);
  addSpend(tables, write.spend);
  addMemory(tables, run.session, write.snapshotId, write.memory);
  if (write.deadLetter === true) bury(tables, run);
  endRequests(tables, run, write.requests);
  if (decision.run === 'ends') {
    leaveInbox(run, write.steered);
    endRun(tables, run);
  } else if (decision.run !== 'stays') continueFrom(run, row, write, decision.run);
  tables.emitter.emit(row.id);
  // The caller's state, which is already expanded, and not the row's.
  const saved = { snapshotId: row.id, state: write.state, ref: row };
  return new CommittedTurn(saved, () => toMetadata(row, row.updatedAt));
}

function moveSession(
  tables: Tables,
  row: SnapshotRow,
  { listHeadAs, replaces, index, movesHead, nextIndex }: CommitDecision<SnapshotRow>,
): void {
  const { session } = row;
  if (listHeadAs !== null && session.head !== undefined) list(session.head, listHeadAs);
  if (replaces !== null) {
    tables.snapshots.delete(replaces.id);
    tables.files.removed([replaces]);
  }
  if (index !== null && row.index < 0) list(row, index);
  if (movesHead) session.head = row;
  session.nextIndex = nextIndex;
  session.updatedAt = row.updatedAt;
}

/** A takeover would start the run over from this snapshot. */
function continueFrom(
  run: RunRow,
  row: SnapshotRow,
  { state, usage, toolCalls }: CommitWrite,
  { inputsDone, midTurn }: { readonly inputsDone: number; readonly midTurn: boolean },
): void {
  run.base = row;
  run.crashes = noCrashes;
  const used = spentInTurn(usage, toolCalls);
  run.checkpoint = { state, stateHash: row.stateHash, inputsDone, midTurn, used };
}

function createRow(
  tables: Tables,
  run: RunRow,
  write: CommitWrite,
  decision: CommitDecision<SnapshotRow>,
): SnapshotRow {
  const { snapshotId: id, turnIndex, event, status, state, stateHash } = write;
  const createdAt = decision.createdAt === 'claim' ? run.createdAt : tables.clock.now();
  const fields = { id, turnIndex, event, status, state, stateHash, createdAt };
  return addSnapshot(tables, { ...fields, session: run.session, parent: undefined });
}

// Models that do not count tokens leave an empty usage with each turn.
const noUsage: Usage = Object.freeze({});

function isEmpty(usage: Usage): boolean {
  return Object.keys(usage).length === 0;
}

function fill(row: SnapshotRow, write: CommitWrite, now: number): void {
  const { turnIndex, event, status, state, stateHash } = write;
  const fields = { turnIndex, event, status, state, stateHash, updatedAt: now };
  Object.assign(row, fields, turnFieldsOf(write));
  if (write.usage !== undefined && isEmpty(write.usage)) row.usage = noUsage;
  if (write.totals !== undefined) row.totals = write.totals;
}

type Mutate = (current: Snapshot | undefined) => Snapshot | undefined;

/** The atomic read-modify-write: see {@link SnapshotStore.saveSnapshot}. */
export function saveSnapshot(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
  mutate: Mutate,
): Snapshot | undefined {
  const current = readSnapshot(tables, scope, { snapshotId });
  const next = mutate(current);
  if (next === undefined) return current;
  const known = findSnapshot(tables, scope, snapshotId);
  const isPending = known?.status === 'pending';
  checkSaved(scope, snapshotId, next, known && { sessionId: known.session.id, isPending });
  const session = findSession(tables, scope, next.sessionId);
  if (session !== undefined) displace(tables, session);
  const row = findSnapshot(tables, scope, snapshotId);
  const saved =
    row === undefined
      ? create(tables, scope, session, next)
      : row.status === 'pending'
        ? change(tables, row, next)
        : relabel(row, next);
  tables.emitter.emit(saved.id);
  return withState(saved, tables.clock.now());
}

function create(
  tables: Tables,
  scope: Scope,
  known: SessionRow | undefined,
  next: Snapshot,
): SnapshotRow {
  if (isUsed(tables, next.snapshotId)) throw taken(next.snapshotId);
  const parent = parentOf(tables, known, next.parentId);
  const state = next.state === undefined ? emptyState : fromPlainState(next.state);
  tables.files.check(scope, state, () => parent?.state ?? emptyState);
  const session = known ?? createSessionRow(tables, scope, next.sessionId);
  const { snapshotId: id, turnIndex, event } = next;
  const fields = { id, session, parent, turnIndex, event, state, stateHash: hashState(state) };
  const row = addSnapshot(tables, { ...fields, status: 'pending' });
  return change(tables, row, next);
}

function parentOf(
  tables: Tables,
  session: SessionRow | undefined,
  parentId: string | undefined,
): SnapshotRow | undefined {
  if (parentId === undefined) return undefined;
  const parent = tables.snapshots.get(parentId);
  if (parent !== undefined && parent.session === session) return parent;
  throw invalid(`The parent "${parentId}" is no snapshot of the same session.`);
}

/** Writes a pending snapshot again. */
function change(tables: Tables, row: SnapshotRow, next: Snapshot): SnapshotRow {
  const { session } = row;
  if (next.state !== undefined) {
    const state = fromPlainState(next.state);
    tables.files.check(session.scope, state, () => row.state);
    row.state = state;
    row.stateHash = hashState(row.state);
  }
  row.status = next.status === 'expired' ? 'pending' : next.status;
  row.turnIndex = next.turnIndex;
  row.event = next.event;
  row.updatedAt = tables.clock.now();
  row.heartbeatAt = row.updatedAt;
  row.ttl = savedPendingTtl;
  Object.assign(row, turnFieldsOf(next));
  if (row.status === 'succeeded') moveHead(session, row);
  if (row.index < 0) list(row);
  session.updatedAt = row.updatedAt;
  return relabel(row, next);
}

function relabel(row: SnapshotRow, next: Snapshot): SnapshotRow {
  if (next.label === undefined) delete row.label;
  else row.label = next.label;
  return row;
}

/** Keeps what is needed to start a run again that is given up. */
function bury(tables: Tables, run: RunRow): void {
  tables.dead.set(run.id, {
    runId: run.id,
    session: run.session,
    request: run.request,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    since: tables.clock.now(),
  });
}
