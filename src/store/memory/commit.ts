import type { Usage } from '../../protocol/turn.ts';
import type { Committed, CommitWrite, RunRef } from '../contract/store.ts';
import { CommittedTurn } from '../rules/committed.ts';
import { type CommitDecision, decideCommit } from '../rules/decide-commit.ts';
import { accepted } from '../rules/decision.ts';
import { checkTitle } from '../rules/size-limits.ts';
import { spentInTurn } from '../rules/totals.ts';
import { endRun, noCrashes } from './claim.ts';
import { bury } from './dead-runs.ts';
import { appendTo } from './events.ts';
import { commitFacts } from './facts.ts';
import { leaveInbox } from './inbox.ts';
import { toMetadata } from './reading.ts';
import { endRequests } from './requests.ts';
import { addSpend } from './spend.ts';
import { currentRun, list, type RunRow, reached, type SnapshotRow, type Tables } from './tables.ts';

/** Writes a snapshot under a run: see {@link RunSupport.commit}. */
export function commit(tables: Tables, ref: RunRef, write: CommitWrite): Committed {
  const run = currentRun(tables, ref);
  const decision = accepted(decideCommit(commitFacts(tables, run, write), write));
  tables.files.check(run.session.scope, write.state, () => reached(run).state);
  const { defaultTitle } = write;
  if (defaultTitle !== undefined) run.session.title ??= checkTitle(defaultTitle);
  if (write.events !== undefined) appendTo(tables, run, write.events);
  const row = decision.row ?? createRow(tables, run, write, decision);
  row.parent = decision.parent ?? undefined;
  fill(row, write, tables.clock.now());
  moveSession(tables, row, decision);
  addSpend(tables, write.spend);
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
  const now = tables.clock.now();
  const row = tables.newRow({
    id: write.snapshotId,
    session: run.session,
    parent: decision.parent ?? undefined,
    index: -1,
    turnIndex: write.turnIndex,
    event: write.event,
    status: write.status,
    createdAt: decision.createdAt === 'claim' ? run.createdAt : now,
    updatedAt: now,
    state: write.state,
    stateHash: write.stateHash,
  });
  tables.snapshots.set(row.id, row);
  return row;
}

// Models that do not count tokens leave an empty usage with each turn.
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
  if (write.edit !== undefined) row.edit = write.edit;
  if (write.usage !== undefined) row.usage = isEmpty(write.usage) ? noUsage : write.usage;
  if (write.totals !== undefined) row.totals = write.totals;
}
