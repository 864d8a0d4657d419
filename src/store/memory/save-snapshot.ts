import { WaymarkError } from '../../core/error.ts';
import { checkScope, checkSessionId, checkSnapshotId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { emptyState, fromPlainState, hashState } from '../../session/session-state.ts';
import { type Scope, savedPendingTtl } from '../contract/store.ts';
import { taken } from '../rules/errors.ts';
import { displace } from './claim.ts';
import { readSnapshot, withState } from './reading.ts';
import { createSessionRow } from './rows.ts';
import {
  findSession,
  findSnapshot,
  isUsed,
  list,
  moveHead,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

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
  checkNext(findSnapshot(tables, scope, snapshotId), snapshotId, next);
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

function checkNext(row: SnapshotRow | undefined, snapshotId: string, next: Snapshot): void {
  if (next.snapshotId !== snapshotId) {
    throw invalid(`Snapshot "${snapshotId}" cannot be saved with the id "${next.snapshotId}".`);
  }
  if (row !== undefined && row.session.id !== next.sessionId) {
    throw invalid(`Snapshot "${snapshotId}" cannot move from one session to another.`);
  }
  if (next.status === 'expired' && row?.status !== 'pending') {
    throw invalid('A snapshot only reads "expired"; it cannot be saved as such.');
  }
}

function create(
  tables: Tables,
  scope: Scope,
  known: SessionRow | undefined,
  next: Snapshot,
): SnapshotRow {
  checkScope(scope);
  checkSessionId(next.sessionId);
  checkSnapshotId(next.snapshotId);
  if (isUsed(tables, next.snapshotId)) throw taken(next.snapshotId);
  const parent = parentOf(tables, known, next.parentId);
  const state = next.state === undefined ? emptyState : fromPlainState(next.state);
  tables.files.check(scope, state, () => parent?.state ?? emptyState);
  const session = known ?? createSessionRow(tables, scope, next.sessionId);
  const now = tables.clock.now();
  const row = tables.newRow({
    id: next.snapshotId,
    session,
    parent,
    index: -1,
    turnIndex: next.turnIndex,
    event: next.event,
    status: 'pending',
    createdAt: now,
    updatedAt: now,
    state,
    stateHash: hashState(state),
  });
  tables.snapshots.set(row.id, row);
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
  if (next.finishReason !== undefined) row.finishReason = next.finishReason;
  if (next.error !== undefined) row.error = next.error;
  if (next.edit !== undefined) row.edit = next.edit;
  if (next.usage !== undefined) row.usage = next.usage;
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

function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}
