import {
  fromPlainState,
  isStateHash,
  type LoadedState,
  type Lookup,
  pathSnapshotsOf,
  type RunRecord,
  type Scope,
  type SessionInfo,
  type SessionState,
  type Snapshot,
  type SnapshotStatus,
  storeErrors,
  storeRules,
  toPlainState,
} from 'waymark/store';
import {
  findRun,
  findSession,
  findSnapshot,
  nearestListed,
  type RunRow,
  reached,
  type SessionRow,
  type SnapshotRow,
  type StoredState,
  sessionOf,
  snapshotAt,
  type Transaction,
} from './tables.ts';

export function iso(time: number): string {
  return new Date(time).toISOString();
}

/** The ids on the paths from the head, and from what the open run continues from, to the root. */
export function activePath(tx: Transaction, { head, run }: SessionRow): ReadonlySet<string> {
  const path = new Set<string>();
  const ends = [head, run === null ? null : (tx.data.runs[run]?.base ?? null)];
  for (const end of ends) {
    for (let at = end; at !== null && !path.has(at); at = snapshotAt(tx, at)?.parent ?? null) {
      path.add(at);
    }
  }
  return path;
}

export function isOrphaned(
  { id, parent, status }: SnapshotRow,
  path: ReadonlySet<string>,
): boolean {
  return status === 'succeeded' ? !path.has(id) : parent !== null && !path.has(parent);
}

/** The open run whose pending snapshot this row is. */
function runOf(tx: Transaction, row: SnapshotRow): RunRow | undefined {
  const run = tx.data.runs[row.id];
  return run?.isListed === true ? run : undefined;
}

export function statusOf(tx: Transaction, row: SnapshotRow): SnapshotStatus {
  if (row.status !== 'pending') return row.status;
  const { heartbeatAt = row.updatedAt, ttl = 0 } = runOf(tx, row) ?? row;
  return storeRules.isExpired({ heartbeatAt, ttl }, tx.now) ? 'expired' : 'pending';
}

/** A snapshot without its state. */
export function toMetadata(
  tx: Transaction,
  row: SnapshotRow,
  path = activePath(tx, sessionOf(tx, row)),
): Snapshot {
  const run = runOf(tx, row);
  const heartbeatAt = run?.heartbeatAt ?? row.heartbeatAt;
  return {
    snapshotId: row.id,
    sessionId: sessionOf(tx, row).id,
    ...(row.parent !== null && { parentId: row.parent }),
    index: row.index,
    turnIndex: row.turnIndex,
    event: row.event,
    status: statusOf(tx, row),
    ...(row.finishReason && { finishReason: row.finishReason }),
    ...(row.error && { error: row.error }),
    ...(row.edit && { edit: row.edit }),
    ...(row.usage && { usage: row.usage }),
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    ...(row.status === 'pending' && heartbeatAt !== undefined && { heartbeatAt: iso(heartbeatAt) }),
    stateHash: run === undefined ? row.stateHash : reached(tx, run).stateHash,
    ...(row.label !== undefined && { label: row.label }),
    orphaned: isOrphaned(row, path),
  };
}

/** The reserved id of a run that has not written its snapshot. */
function toPending(tx: Transaction, run: RunRow): Snapshot {
  const session = sessionOf(tx, run);
  const parent = nearestListed(tx, run.start);
  return {
    snapshotId: run.id,
    sessionId: session.id,
    ...(parent !== null && { parentId: parent }),
    index: -1,
    turnIndex: run.turnIndex,
    event: 'turnEnd',
    status: storeRules.isExpired(run, tx.now) ? 'expired' : 'pending',
    createdAt: iso(run.createdAt),
    updatedAt: iso(run.heartbeatAt),
    heartbeatAt: iso(run.heartbeatAt),
    stateHash: reached(tx, run).stateHash,
    orphaned: parent !== null && !activePath(tx, session).has(parent),
  };
}

/** The target of a lookup: its description, its state, and the snapshot whose path the state is on. */
interface Found {
  readonly snapshot: Snapshot;
  readonly stored: StoredState;
  readonly end: string | null;
}

function find(tx: Transaction, scope: Scope, lookup: Lookup): Found | undefined {
  const row =
    'snapshotId' in lookup
      ? findSnapshot(tx, scope, lookup.snapshotId)
      : snapshotAt(tx, findSession(tx, scope, lookup.sessionId)?.head ?? null);
  if (row !== undefined) {
    const run = runOf(tx, row);
    const stored = run === undefined ? row : reached(tx, run);
    return { snapshot: toMetadata(tx, row), stored, end: row.id };
  }
  const run = 'snapshotId' in lookup ? findRun(tx, scope, lookup.snapshotId) : undefined;
  if (run === undefined) return undefined;
  return { snapshot: toPending(tx, run), stored: reached(tx, run), end: run.base };
}

export function readSnapshot(tx: Transaction, scope: Scope, lookup: Lookup): Snapshot | undefined {
  const found = find(tx, scope, lookup);
  if (found === undefined) return undefined;
  const state = fromPlainState(found.stored.state);
  const marks = pathSnapshotsOf(state.history, pathTo(tx, found.end));
  return { ...found.snapshot, state: toPlainState(state, { marks }) };
}

type Path = Parameters<typeof pathSnapshotsOf>[1];

/** The snapshots from the root to this one, which mark the last message of their turn. */
function pathTo(tx: Transaction, end: string | null): Path {
  const path: Path[number][] = [];
  for (let row = snapshotAt(tx, end); row !== undefined; row = snapshotAt(tx, row.parent)) {
    const { id, status, event, index } = row;
    const { history } = fromPlainState(row.state);
    const isMark = status === 'succeeded' && event !== 'toolIterationEnd' && index >= 0;
    const length = isMark ? history.length : 0;
    path.unshift({ snapshotId: id, length, chain: () => history.chain() });
  }
  return path;
}

/** The state for a turn to continue from, verified against its hash. */
export function loadState(tx: Transaction, scope: Scope, lookup: Lookup): LoadedState | undefined {
  const found = find(tx, scope, lookup);
  if (found === undefined) return undefined;
  const { snapshot, stored } = found;
  return { snapshotId: snapshot.snapshotId, state: openState(stored), ref: undefined, snapshot };
}

export function openState({ state: plain, stateHash }: StoredState): SessionState {
  const state = fromPlainState(plain);
  if (isStateHash(state, stateHash)) return state;
  throw storeErrors.fault('DATA_LOSS', 'A stored state does not match its hash.');
}

export function toSessionInfo(tx: Transaction, session: SessionRow): SessionInfo {
  const run = session.run === null ? undefined : tx.data.runs[session.run];
  const head = snapshotAt(tx, session.head);
  const isHeld = run && storeRules.isHolder({ ...run, mode: run.request.mode }, tx.now);
  return {
    sessionId: session.id,
    agent: session.scope.agent,
    ...(session.title !== undefined && { title: session.title }),
    ...(session.metadata && { metadata: session.metadata }),
    ...(head && { headId: head.id }),
    turnCount: head === undefined ? 0 : head.turnIndex + 1,
    createdAt: iso(session.createdAt),
    updatedAt: iso(session.updatedAt),
    ...(run && isHeld && { running: run.id }),
    ...(session.forkedFrom && { forkedFrom: session.forkedFrom }),
    ...(session.startedBy && { startedBy: session.startedBy }),
  };
}

export function toRunRecord(tx: Transaction, run: RunRow): RunRecord {
  const { scope, id: sessionId } = sessionOf(tx, run);
  return {
    ...run.request,
    runId: run.id,
    attempt: run.attempt,
    scope,
    sessionId,
    worker: run.worker,
    ...(run.base !== null && { parentId: run.base }),
    createdAt: iso(run.createdAt),
    heartbeatAt: iso(run.heartbeatAt),
    expired: storeRules.isExpired(run, tx.now),
    stopping: run.stopping,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    midTurn: run.checkpoint?.midTurn ?? false,
    ...(run.crashes.length > 0 && { crashes: run.crashes }),
  };
}
