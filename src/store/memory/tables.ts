import { createKeyedEmitter, type KeyedEmitter } from '../../core/async/emitter.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot, SnapshotEvent, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type {
  Effect,
  RunCrash,
  RunRef,
  RunRequest,
  RunUsage,
  Scope,
  Spend,
  SpendFilter,
  SteeringMessage,
} from '../contract/store.ts';
import { leftInbox } from '../rules/decide-steer.ts';
import { notHeld } from '../rules/errors.ts';
import { isHolder } from '../rules/holder.ts';
import type { StoredReservation, StoredSpend } from '../rules/spend.ts';
import type { KeptEvents } from './kept-events.ts';
import type { MemoryTable } from './memory-rows.ts';

export interface SpendTable {
  add(spend: Spend, day: number): void;
  reserve(reservation: StoredReservation): void;
  eraseOwner(owner: string): void;
  rows(filter: SpendFilter): Iterable<StoredSpend>;
  /** The reservations of an owner that are not settled. */
  reservations(owner: string): readonly StoredReservation[];
}

export interface FileTable {
  /** Refuses a state that names a file which the store does not have, unless the state before named it already. */
  check(scope: Scope, state: SessionState, before: () => SessionState): void;
  /** The fault of a file; `undefined`: none. */
  readonly problemOf: (hash: string) => string | undefined;
  /** A node of a tree; `undefined` if it is not in the store. */
  readonly node: (hash: string) => Uint8Array | undefined;
  runEnded(runId: string): void;
  removed(rows: readonly SnapshotRow[]): void;
}

/** The stored fields of a snapshot; `orphaned` and `expired` are computed on reading. */
export interface SnapshotRow {
  readonly id: string;
  readonly session: SessionRow;
  parent: SnapshotRow | undefined;
  /** -1: not listed. */
  index: number;
  turnIndex: number;
  event: SnapshotEvent;
  status: Exclude<SnapshotStatus, 'expired'>;
  finishReason?: FinishReason;
  error?: NonNullable<Snapshot['error']>;
  edit?: NonNullable<Snapshot['edit']>;
  usage?: Usage;
  totals?: Totals;
  label?: string;
  readonly createdAt: number;
  updatedAt: number;
  /** The last heartbeat of a pending one without a run, and how long that is valid. */
  heartbeatAt?: number;
  ttl?: number;
  state: SessionState;
  stateHash: string;
  /** The attempt that may still attach its partial state, if it was aborted. */
  partialFrom?: number;
}

/** A conversation: its listed snapshots in the order of their index, its head, and the run that works on it. */
export interface SessionRow {
  readonly scope: Scope;
  readonly id: string;
  readonly createdAt: number;
  updatedAt: number;
  title?: string;
  metadata?: JsonObject;
  readonly forkedFrom?: NonNullable<SessionInfo['forkedFrom']>;
  readonly startedBy?: NonNullable<SessionInfo['startedBy']>;
  head: SnapshotRow | undefined;
  listed: SnapshotRow[];
  nextIndex: number;
  run: RunRow | undefined;
  /** Messages that its runs have left. */
  inbox?: readonly SteeringMessage[];
  /** The effects of its calls, by key; replaced as a whole. */
  effects?: ReadonlyMap<string, EffectRow>;
}

/** An effect of a call; a change replaces it. */
export interface EffectRow extends Effect {
  readonly runId: string;
  readonly undoneAt?: string;
}

/** The state a run had reached, for a takeover. */
export interface Checkpoint {
  readonly state: SessionState;
  readonly stateHash: string;
  readonly inputsDone: number;
  readonly midTurn: boolean;
  readonly used?: RunUsage | undefined;
}

/** An open run. */
export interface RunRow {
  readonly id: string;
  readonly session: SessionRow;
  attempt: number;
  request: RunRequest;
  worker: string;
  ttl: number;
  readonly createdAt: number;
  heartbeatAt: number;
  /** The snapshot that it was claimed from. */
  readonly start: SnapshotRow | undefined;
  /** The last committed snapshot it continues from: its own last one, else `start`. */
  base: SnapshotRow | undefined;
  readonly turnIndex: number;
  checkpoint?: Checkpoint;
  stopping: boolean;
  /** Workers that died with it since its last progress. */
  crashes: readonly RunCrash[];
  readonly steps: Map<string, Json | undefined>;
  /** Messages for the running turn; before them come those that earlier runs have left. */
  inbox: readonly SteeringMessage[];
  /** The listed pending snapshot of a detached run. */
  row?: SnapshotRow;
}

/** A run that was given up. */
export interface DeadRow {
  readonly runId: string;
  readonly session: SessionRow;
  readonly request: RunRequest;
  readonly inputsDone: number;
  readonly since: number;
}

/** The events of a run; they outlive it for a while. */
export interface StoredEvents {
  readonly session: SessionRow;
  readonly kept: KeptEvents;
}

/** A request id that a run was claimed under. */
export interface RequestRow {
  readonly session: SessionRow;
  readonly runId: string;
  readonly digest: string;
  /** When it was claimed or, once there is a receipt, when the run ended. */
  readonly at: number;
  readonly receipt?: Json;
}

/** Brings rows up to date before they are looked for. */
export interface Refresh {
  session(scope: Scope, sessionId: string): void;
  /** Also a run by its reserved id, and its events. */
  snapshot(scope: Scope, snapshotId: string): void;
  run(runId: string): void;
  request(key: string): void;
}

export interface Tables {
  /** Absent: the rows are all there is. */
  readonly refresh?: Refresh;
  readonly clock: Clock;
  readonly newId: () => string;
  /** A row as this store keeps it. */
  readonly newRow: (row: SnapshotRow) => SnapshotRow;
  readonly eventsTtl: number;
  readonly emitter: KeyedEmitter;
  readonly sessions: Map<string, SessionRow>;
  readonly snapshots: Map<string, SnapshotRow>;
  readonly runs: Map<string, RunRow>;
  readonly events: Map<string, StoredEvents>;
  /** When runs with events ended, in that order; until their events are forgotten. */
  readonly endedAt: Map<string, number>;
  /** The dead-letter queue, by the run's id, oldest first. */
  readonly dead: Map<string, DeadRow>;
  /** By key; the oldest first. */
  readonly requests: Map<string, RequestRow>;
  readonly spend: SpendTable;
  readonly files: FileTable;
  readonly memory: MemoryTable;
}

/** Tables without rows. */
export function emptyTables() {
  return {
    emitter: createKeyedEmitter(),
    sessions: new Map<string, SessionRow>(),
    snapshots: new Map<string, SnapshotRow>(),
    runs: new Map<string, RunRow>(),
    events: new Map<string, StoredEvents>(),
    endedAt: new Map<string, number>(),
    dead: new Map<string, DeadRow>(),
    requests: new Map<string, RequestRow>(),
  } satisfies Partial<Tables>;
}

/** The state of a run that others can see: its last checkpoint, or the state it continues from. */
export function stateOf(run: RunRow): Readonly<Pick<SnapshotRow, 'state' | 'stateHash'>> {
  return run.checkpoint ?? run.base ?? { state: emptyState, stateHash: hashState(emptyState) };
}

/** The key of a session: ids live under (owner, agent). */
export function sessionKey(scope: Scope, sessionId: string): string {
  return JSON.stringify([scope.agent, scope.owner ?? null, sessionId]);
}

export function inScope(session: SessionRow, scope: Scope | undefined): boolean {
  if (scope === undefined) return true;
  return session.scope.agent === scope.agent && session.scope.owner === scope.owner;
}

export function findSession(
  tables: Tables,
  scope: Scope,
  sessionId: string,
): SessionRow | undefined {
  tables.refresh?.session(scope, sessionId);
  return tables.sessions.get(sessionKey(scope, sessionId));
}

/** A snapshot that has been written; the reserved id of an attached run is not one. */
export function findSnapshot(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
): SnapshotRow | undefined {
  tables.refresh?.snapshot(scope, snapshotId);
  const row = tables.snapshots.get(snapshotId);
  return row !== undefined && inScope(row.session, scope) ? row : undefined;
}

export function findRun(tables: Tables, scope: Scope, runId: string): RunRow | undefined {
  tables.refresh?.run(runId);
  const run = tables.runs.get(runId);
  return run !== undefined && inScope(run.session, scope) ? run : undefined;
}

/** The run under its current attempt. A stale attempt (fencing token) means that another worker has taken over. */
export function currentRun(tables: Tables, ref: RunRef): RunRow {
  const run = heldRun(tables, ref);
  if (run === undefined) throw notHeld(ref.runId, ref.attempt);
  return run;
}

/** The run, if this attempt still holds it. */
export function heldRun(tables: Tables, { runId, attempt }: RunRef): RunRow | undefined {
  tables.refresh?.run(runId);
  const run = tables.runs.get(runId);
  return run?.attempt === attempt ? run : undefined;
}

export function findRequest(tables: Tables, key: string): RequestRow | undefined {
  tables.refresh?.request(key);
  return tables.requests.get(key);
}

/** The run that holds a session. */
export function holder({ run }: SessionRow, now: number): RunRow | undefined {
  if (run === undefined) return undefined;
  const { heartbeatAt, ttl, request } = run;
  return isHolder({ heartbeatAt, ttl, mode: request.mode }, now) ? run : undefined;
}

/**
 * A heartbeat from a clock that is ahead by more than the ttl counts from now on. The run of a process with such a clock that
 * died expires after its ttl, and not when the wrong time comes; one that is alive sends a heartbeat before that.
 */
export function limitHeartbeat(run: RunRow, now: number): void {
  if (run.heartbeatAt - now > run.ttl) run.heartbeatAt = now;
}

/** Whether a snapshot or a run has this id. */
export function isUsed(tables: Tables, snapshotId: string): boolean {
  return tables.snapshots.has(snapshotId) || tables.runs.has(snapshotId);
}

/** Gives a snapshot its place in the list. */
export function list(row: SnapshotRow, index: number = row.session.nextIndex): void {
  const { session } = row;
  row.index = index;
  session.nextIndex = index + 1;
  session.listed.push(row);
}

/** The parent of a new snapshot: never a state that is not listed. */
export function nearestListed(row: SnapshotRow | undefined): SnapshotRow | undefined {
  return row === undefined || row.index >= 0 ? row : row.parent;
}

/** Moves a session's head. A state that was saved without being listed is listed before the head leaves it. */
export function moveHead(session: SessionRow, row: SnapshotRow): void {
  const left = session.head;
  if (left !== undefined && left !== row && left.index < 0) list(left);
  session.head = row;
}

/** The inbox of a run, with what earlier runs have left. */
export function inboxOf({ request, session, inbox }: RunRow): readonly SteeringMessage[] {
  const { inbox: left } = session;
  return request.keepInbox !== true || left === undefined ? inbox : [...left, ...inbox];
}

/** Leaves what a run has not taken to the session's next run. Call it before the run ends. */
export function leaveInbox(run: RunRow, taken = 0): void {
  const { session, request, id } = run;
  if (request.keepInbox !== true || run.inbox.length + taken === 0) return;
  const left = leftInbox(inboxOf(run), taken, id);
  if (left.length === 0) delete session.inbox;
  else session.inbox = left;
}
