import { WaymarkError } from 'waymark';
import {
  type Scope,
  type Snapshot,
  type SnapshotStore,
  storeConstants,
  storeErrors,
  storeRules,
} from 'waymark/store';
import { displace } from './claim.ts';
import { readSnapshot } from './read.ts';
import {
  createSession,
  findSession,
  findSnapshot,
  isUsed,
  list,
  type SnapshotRow,
  sessionOf,
  snapshotAt,
  type Transaction,
  toStored,
} from './tables.ts';

/** The atomic read-modify-write that every store must have. */
export function saveSnapshot(
  tx: Transaction,
  scope: Scope,
  snapshotId: string,
  mutate: Parameters<SnapshotStore['saveSnapshot']>[2],
): Snapshot | undefined {
  const current = readSnapshot(tx, scope, { snapshotId });
  const next = mutate(current);
  if (next === undefined) return current;
  const known = findSnapshot(tx, scope, snapshotId);
  storeRules.save(
    scope,
    snapshotId,
    next,
    known && { sessionId: sessionOf(tx, known).id, isPending: known.status === 'pending' },
  );
  const session = findSession(tx, scope, next.sessionId);
  if (session !== undefined) displace(tx, session);
  const row = findSnapshot(tx, scope, snapshotId) ?? create(tx, scope, next);
  if (row.status === 'pending') change(tx, row, next);
  if (next.label === undefined) delete row.label;
  else row.label = next.label;
  tx.emit(row.id);
  return readSnapshot(tx, scope, { snapshotId });
}

function create(tx: Transaction, scope: Scope, next: Snapshot): SnapshotRow {
  if (isUsed(tx, next.snapshotId)) throw storeErrors.snapshotExists(next.snapshotId);
  const known = findSession(tx, scope, next.sessionId);
  const parent = next.parentId === undefined ? undefined : tx.data.snapshots[next.parentId];
  if (next.parentId !== undefined && (parent === undefined || parent.session !== known?.key)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The parent "${next.parentId}" is not a snapshot of the same session.`,
    );
  }
  const { key } = known ?? createSession(tx, scope, next.sessionId);
  const row: SnapshotRow = {
    id: next.snapshotId,
    session: key,
    parent: parent?.id ?? null,
    index: -1,
    turnIndex: next.turnIndex,
    event: next.event,
    status: 'pending',
    createdAt: tx.now,
    updatedAt: tx.now,
    ...toStored({}),
  };
  tx.data.snapshots[row.id] = row;
  return row;
}

/** Writes a pending snapshot again. */
function change(tx: Transaction, row: SnapshotRow, next: Snapshot): void {
  const session = sessionOf(tx, row);
  if (next.state !== undefined) {
    Object.assign(row, toStored(next.state));
  }
  row.status = next.status === 'expired' ? 'pending' : next.status;
  row.turnIndex = next.turnIndex;
  row.event = next.event;
  row.updatedAt = tx.now;
  row.heartbeatAt = tx.now;
  row.ttl = storeConstants.savedPendingTtl;
  if (next.finishReason !== undefined) row.finishReason = next.finishReason;
  if (next.error !== undefined) row.error = next.error;
  if (next.edit !== undefined) row.edit = next.edit;
  if (next.usage !== undefined) row.usage = next.usage;
  if (row.status === 'succeeded') {
    const head = snapshotAt(tx, session.head);
    if (head !== undefined && head !== row && head.index < 0) list(tx, head);
    session.head = row.id;
  }
  if (row.index < 0) list(tx, row);
  session.updatedAt = tx.now;
}
