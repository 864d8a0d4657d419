import { defined } from '../../core/json/json.ts';
import { type MessageOptions, positionsOf } from '../../protocol/message-page.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import { endsTurn, type Snapshot, type SnapshotStatus } from '../../protocol/snapshot.ts';
import {
  pathSnapshotsOf,
  type SessionState,
  toPlainPage,
  toPlainState,
} from '../../session/session-state.ts';
import type { LoadedState, Lookup, RunRecord, Scope } from '../contract/store.ts';
import { isExpired } from '../rules/holder.ts';
import { turnFieldsOf } from './rows.ts';
import {
  findRun,
  findSession,
  findSnapshot,
  holder,
  nearestListed,
  type RunRow,
  type SessionRow,
  type SnapshotRow,
  stateOf,
  type Tables,
} from './tables.ts';

/** Milliseconds as ISO 8601. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}

/** The snapshots on the path from the head to the root, and those of the turn that is being worked on. */
export function activePath({ head, run }: SessionRow): ReadonlySet<SnapshotRow> {
  const path = new Set<SnapshotRow>();
  for (let row = head; row !== undefined; row = row.parent) path.add(row);
  for (let row = run?.base; row !== undefined && !path.has(row); row = row.parent) path.add(row);
  return path;
}

// The whole path is walked only where the answer is not plain: a turn costs the same however long the session is.
function nearbyPath(row: SnapshotRow): ReadonlySet<SnapshotRow> | undefined {
  const { head, run } = row.session;
  if (row === run?.base) return new Set([row]);
  return head !== undefined && (row === head || row.parent === head) ? new Set([head]) : undefined;
}

/**
 * A succeeded snapshot is orphaned off the active path, any other when its parent is. One without a parent hangs on the
 * empty session, which every path begins with.
 */
export function isOrphaned(row: SnapshotRow, path: ReadonlySet<SnapshotRow>): boolean {
  if (row.status === 'succeeded') return !path.has(row);
  return row.parent !== undefined && !path.has(row.parent);
}

/** The open run whose pending snapshot this is. */
function runOf(row: SnapshotRow): RunRow | undefined {
  const { run } = row.session;
  return run?.row === row ? run : undefined;
}

/** The state that a snapshot shows: its own, or what its open run has reached. */
function reachedBy(row: SnapshotRow): Pick<SnapshotRow, 'state' | 'stateHash'> {
  const run = runOf(row);
  return run === undefined ? row : stateOf(run);
}

/** The status of a snapshot as it reads now. */
export function statusOf(row: SnapshotRow, now: number): SnapshotStatus {
  if (row.status !== 'pending') return row.status;
  const run = runOf(row);
  if (run !== undefined) return isExpired(run, now) ? 'expired' : 'pending';
  const { heartbeatAt = row.updatedAt, ttl = 0 } = row;
  return isExpired({ heartbeatAt, ttl }, now) ? 'expired' : 'pending';
}

/** A snapshot without its state. */
export function toMetadata(
  row: SnapshotRow,
  now: number,
  path: ReadonlySet<SnapshotRow> = nearbyPath(row) ?? activePath(row.session),
): Snapshot {
  const run = runOf(row);
  const heartbeatAt = run?.heartbeatAt ?? row.heartbeatAt;
  const hasHeartbeat = row.status === 'pending' && heartbeatAt !== undefined;
  return defined({
    snapshotId: row.id,
    sessionId: row.session.id,
    parentId: row.parent?.id,
    index: row.index,
    turnIndex: row.turnIndex,
    event: row.event,
    status: statusOf(row, now),
    ...turnFieldsOf(row),
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    heartbeatAt: hasHeartbeat ? iso(heartbeatAt) : undefined,
    stateHash: reachedBy(row).stateHash,
    label: row.label,
    orphaned: isOrphaned(row, path),
  });
}

/** How the reserved id of a run that has no row yet reads. */
function toPending(run: RunRow, now: number): Snapshot {
  const parent = nearestListed(run.start);
  return {
    snapshotId: run.id,
    sessionId: run.session.id,
    ...(parent && { parentId: parent.id }),
    index: -1,
    turnIndex: run.turnIndex,
    event: 'turnEnd',
    status: isExpired(run, now) ? 'expired' : 'pending',
    createdAt: iso(run.createdAt),
    updatedAt: iso(run.heartbeatAt),
    heartbeatAt: iso(run.heartbeatAt),
    stateHash: stateOf(run).stateHash,
    orphaned: parent !== undefined && !activePath(run.session).has(parent),
  };
}

/** The target of a lookup: a written snapshot, or the run under a reserved id. */
function find(
  tables: Tables,
  scope: Scope,
  lookup: Lookup,
): { readonly row?: SnapshotRow; readonly run?: RunRow } {
  const row =
    'snapshotId' in lookup
      ? findSnapshot(tables, scope, lookup.snapshotId)
      : findSession(tables, scope, lookup.sessionId)?.head;
  if (row !== undefined) return { row };
  const run = 'snapshotId' in lookup ? findRun(tables, scope, lookup.snapshotId) : undefined;
  return run === undefined ? {} : { run };
}

/** The path from the root to a snapshot, itself included. */
function pathTo(row: SnapshotRow | undefined): SnapshotRow[] {
  const path: SnapshotRow[] = [];
  for (let at = row; at !== undefined; at = at.parent) path.push(at);
  return path.reverse();
}

/** A snapshot with its plain state, marked. */
export function readSnapshot(
  tables: Tables,
  scope: Scope,
  lookup: Lookup,
  options: MessageOptions = {},
): Snapshot | undefined {
  const { row, run } = find(tables, scope, lookup);
  const now = tables.clock.now();
  if (row !== undefined) return withState(row, now, options);
  if (run === undefined) return undefined;
  return { ...toPending(run, now), ...toMarked(stateOf(run).state, run.base, options) };
}

/** A written snapshot with its plain state, marked. */
export function withState(row: SnapshotRow, now: number, options: MessageOptions = {}): Snapshot {
  return { ...toMetadata(row, now), ...toMarked(reachedBy(row).state, row, options) };
}

/** A state in its plain form, or a page of its messages, marked by the snapshots on the path to a row. */
function toMarked(
  state: SessionState,
  row: SnapshotRow | undefined,
  { messages: page }: MessageOptions,
): Pick<Snapshot, 'state' | 'messageRange'> {
  const { history } = state;
  if (page === undefined) {
    const marks = pathSnapshotsOf(history, pathTo(row).map(toTurn));
    return { state: toPlainState(state, { marks }) };
  }
  const { from, to } = positionsOf(page, history.length);
  const near = pathAfter(row, from)
    .map(toTurn)
    .filter(({ length }) => length > from && length <= to);
  const chains = history.chains(near.map(({ length }) => length));
  const fitting = near.filter(({ length, chain }) => chains.get(length) === chain());
  const marks = new Map(fitting.map(({ length, snapshotId }) => [length - 1, snapshotId]));
  return toPlainPage(state, history.slice(from, to), { from, total: history.length, marks });
}

/**
 * The snapshots on the path that can have left a mark at `from` or behind it. One that ends before it is the last to be looked
 * at: what came before it is shorter, or was trimmed to it.
 */
function pathAfter(row: SnapshotRow | undefined, from: number): SnapshotRow[] {
  const path: SnapshotRow[] = [];
  for (let at = row; at !== undefined; at = at.parent) {
    path.push(at);
    const { length } = toTurn(at);
    if (length > 0 && length <= from) break;
  }
  return path.reverse();
}

function toTurn(row: SnapshotRow): Parameters<typeof pathSnapshotsOf>[1][number] {
  const { id: snapshotId, status, event, index, parent } = row;
  const { history } = row.state;
  // An edit has the messages of its parent, unless it saves the partial state of an aborted run.
  const addsTurn = event === 'edit' && parent?.state.history.length !== history.length;
  const marks = status === 'succeeded' && (endsTurn(event) || addsTurn) && index >= 0;
  return { snapshotId, length: marks ? history.length : 0, chain: () => history.chain() };
}

/** A state in the form a turn continues from. It never left the process, so there is nothing to verify. */
export function loadState(tables: Tables, scope: Scope, lookup: Lookup): LoadedState | undefined {
  const { row, run } = find(tables, scope, lookup);
  const now = tables.clock.now();
  if (row !== undefined) {
    const { state } = reachedBy(row);
    return { snapshotId: row.id, state, ref: row, snapshot: toMetadata(row, now) };
  }
  if (run === undefined) return undefined;
  return {
    snapshotId: run.id,
    state: stateOf(run).state,
    ref: run.base,
    snapshot: toPending(run, now),
  };
}

export function toSessionInfo(session: SessionRow, now: number): SessionInfo {
  const { title, metadata, head, forkedFrom, startedBy } = session;
  return defined({
    sessionId: session.id,
    agent: session.scope.agent,
    title,
    metadata,
    headId: head?.id,
    turnCount: head === undefined ? 0 : head.turnIndex + 1,
    createdAt: iso(session.createdAt),
    updatedAt: iso(session.updatedAt),
    running: holder(session, now)?.id,
    forkedFrom,
    startedBy,
  });
}

export function toRunRecord(run: RunRow, now: number): RunRecord {
  return defined({
    ...run.request,
    runId: run.id,
    attempt: run.attempt,
    scope: run.session.scope,
    sessionId: run.session.id,
    worker: run.worker,
    parentId: run.base?.id,
    createdAt: iso(run.createdAt),
    heartbeatAt: iso(run.heartbeatAt),
    expired: isExpired(run, now),
    stopping: run.stopping,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    midTurn: run.checkpoint?.midTurn ?? false,
    steered: run.inbox.length > 0 || undefined,
    crashes: run.crashes.length > 0 ? run.crashes : undefined,
  });
}
