import {
  type Committed,
  type CommitWrite,
  type RunRef,
  storeRules,
  toPlainState,
} from 'waymark/store';
import { endRun } from './claim.ts';
import { appendTo } from './events.ts';
import { commitFacts } from './facts.ts';
import { toMetadata } from './read.ts';
import { endRequests } from './requests.ts';
import {
  currentRun,
  list,
  type RunRow,
  type SnapshotRow,
  sessionOf,
  snapshotAt,
  type Transaction,
} from './tables.ts';

// #region commit
/** Writes a snapshot under a run: the rules decide, the store writes what they say. */
export function commit(tx: Transaction, ref: RunRef, write: CommitWrite): Committed {
  const run = currentRun(tx, ref);
  const decision = storeRules.commit(commitFacts(tx, run, write), write);
  appendTo(tx, run, write.events);
  const before = snapshotAt(tx, decision.row);
  const createdAt = decision.createdAt === 'claim' ? run.createdAt : tx.now;
  const row = toRow(tx, run, write, before ?? { index: -1, createdAt });
  row.parent = decision.parent;
  tx.data.snapshots[row.id] = row;
  const session = sessionOf(tx, run);
  const head = snapshotAt(tx, session.head);
  if (decision.listHeadAs !== null && head !== undefined) list(tx, head, decision.listHeadAs);
  if (decision.replaces !== null) delete tx.data.snapshots[decision.replaces];
  if (decision.index !== null && row.index < 0) list(tx, row, decision.index);
  if (decision.movesHead) session.head = row.id;
  session.nextIndex = decision.nextIndex;
  session.updatedAt = tx.now;
  if (write.defaultTitle !== undefined) session.title ??= write.defaultTitle;
  if (write.deadLetter === true) bury(tx, run);
  endRequests(tx, run, write.requests);
  if (decision.run === 'ends') endRun(tx, run);
  else if (decision.run !== 'stays') {
    const { state, stateHash } = row;
    const { usage = {}, toolCalls = 0 } = write;
    const used = { turn: { usage, toolCalls }, before: {} };
    run.base = row.id;
    run.crashes = [];
    run.checkpoint = { state, stateHash, ...decision.run, used };
  }
  tx.emit(row.id);
  return {
    base: { snapshotId: row.id, state: write.state, ref: undefined },
    snapshot: toMetadata(tx, row),
  };
}
// #endregion

function toRow(
  tx: Transaction,
  run: RunRow,
  write: CommitWrite,
  before: Pick<SnapshotRow, 'index' | 'createdAt'> & Partial<SnapshotRow>,
): SnapshotRow {
  const { snapshotId, turnIndex, event, status, stateHash } = write;
  return {
    ...before,
    id: snapshotId,
    session: run.session,
    parent: null,
    turnIndex,
    event,
    status,
    updatedAt: tx.now,
    state: toPlainState(write.state),
    stateHash,
    ...(write.finishReason && { finishReason: write.finishReason }),
    ...(write.error && { error: write.error }),
    ...(write.edit && { edit: write.edit }),
    ...(write.usage && { usage: write.usage }),
    ...(write.totals && { totals: write.totals }),
  };
}

/** Keeps what is needed to start a run again that was given up. */
function bury(tx: Transaction, run: RunRow): void {
  tx.data.dead[run.id] = {
    runId: run.id,
    session: run.session,
    request: run.request,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    since: tx.now,
  };
}
