import {
  type FinishReason,
  fromPlainState,
  hashState,
  type Json,
  type JsonObject,
  type RunCrash,
  type RunEvent,
  type RunRef,
  type RunRequest,
  type RunUsage,
  type Scope,
  type SessionInfo,
  type Snapshot,
  type SnapshotEvent,
  type SnapshotStatus,
  type State,
  storeErrors,
  type Totals,
  toPlainState,
  type Usage,
} from 'waymark/store';

/** A state as JSON, with its hash. */
export interface StoredState {
  state: State;
  stateHash: string;
}

export interface SnapshotRow extends StoredState {
  readonly id: string;
  readonly session: string;
  parent: string | null;
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
  /** The last heartbeat of a pending snapshot without a run. */
  heartbeatAt?: number;
  ttl?: number;
  /** The attempt that may still attach its partial state, if it was aborted. */
  partialFrom?: number;
}

export interface SessionRow {
  readonly key: string;
  readonly scope: Scope;
  readonly id: string;
  readonly createdAt: number;
  updatedAt: number;
  title?: string;
  metadata?: JsonObject;
  readonly forkedFrom?: NonNullable<SessionInfo['forkedFrom']>;
  readonly startedBy?: NonNullable<SessionInfo['startedBy']>;
  head: string | null;
  nextIndex: number;
  run: string | null;
}

export interface RunRow {
  readonly id: string;
  readonly session: string;
  attempt: number;
  request: RunRequest;
  worker: string;
  ttl: number;
  readonly createdAt: number;
  heartbeatAt: number;
  /** The snapshot it was claimed from, and the last one it continues from. */
  readonly start: string | null;
  base: string | null;
  readonly turnIndex: number;
  checkpoint?: StoredState & { inputsDone: number; midTurn: boolean; used?: RunUsage };
  stopping: boolean;
  crashes: readonly RunCrash[];
  /** A list, because a key can be any text, `__proto__` included. */
  readonly steps: { readonly key: string; readonly value?: Json }[];
  /** Its pending snapshot is listed: the run is detached. */
  isListed: boolean;
}

export interface EventLog {
  readonly session: string;
  readonly events: RunEvent[];
  endedAt?: number;
}

export interface DeadRow {
  readonly runId: string;
  readonly session: string;
  readonly request: RunRequest;
  readonly inputsDone: number;
  readonly since: number;
}

export interface RequestRow {
  readonly runId: string;
  readonly session: string;
  readonly sessionId: string;
  readonly digest: string;
  readonly at: number;
  readonly receipt?: Json;
}

/** Everything the store keeps; all of it is JSON. */
export interface Data {
  readonly sessions: Record<string, SessionRow>;
  readonly snapshots: Record<string, SnapshotRow>;
  readonly runs: Record<string, RunRow>;
  readonly events: Record<string, EventLog>;
  readonly dead: Record<string, DeadRow>;
  readonly requests: Record<string, RequestRow>;
}

export const noData = (): Data => ({
  sessions: {},
  snapshots: {},
  runs: {},
  events: {},
  dead: {},
  requests: {},
});

/** The data and helpers that work on the store gets. */
export interface Transaction {
  readonly data: Data;
  readonly now: number;
  /** Calls the listeners of a key once the work has been written. */
  readonly emit: (key: string) => void;
}

function keyOf({ agent, owner }: Scope, sessionId: string): string {
  return JSON.stringify([agent, owner ?? null, sessionId]);
}

export function inScope(session: SessionRow | undefined, scope: Scope | undefined): boolean {
  if (session === undefined || scope === undefined) return session !== undefined;
  return session.scope.agent === scope.agent && session.scope.owner === scope.owner;
}

export function findSession(tx: Transaction, scope: Scope, id: string): SessionRow | undefined {
  return tx.data.sessions[keyOf(scope, id)];
}

export function findSnapshot(tx: Transaction, scope: Scope, id: string): SnapshotRow | undefined {
  const row = tx.data.snapshots[id];
  return row !== undefined && inScope(tx.data.sessions[row.session], scope) ? row : undefined;
}

export function findRun(tx: Transaction, scope: Scope, id: string): RunRow | undefined {
  const run = tx.data.runs[id];
  return run !== undefined && inScope(tx.data.sessions[run.session], scope) ? run : undefined;
}

/** The session of a row. Rows are deleted with their session, so it is there. */
export function sessionOf(tx: Transaction, row: { readonly session: string }): SessionRow {
  const session = tx.data.sessions[row.session];
  if (session === undefined) throw new TypeError(`The session ${row.session} is missing.`);
  return session;
}

export function snapshotAt(tx: Transaction, id: string | null): SnapshotRow | undefined {
  return id === null ? undefined : tx.data.snapshots[id];
}

/** The run under the caller's attempt: every write of a stale worker ends here. */
export function currentRun(tx: Transaction, { runId, attempt }: RunRef): RunRow {
  const run = tx.data.runs[runId];
  if (run?.attempt !== attempt) throw storeErrors.notHeld(runId, attempt);
  return run;
}

export function isUsed({ data }: Transaction, id: string): boolean {
  return id in data.snapshots || id in data.runs;
}

/** The snapshots of a session in the order of their index; an unlisted head comes last. */
export function rowsOf({ data }: Transaction, session: SessionRow): readonly SnapshotRow[] {
  const place = ({ index }: SnapshotRow): number => (index < 0 ? Number.MAX_SAFE_INTEGER : index);
  return Object.values(data.snapshots)
    .filter((row) => row.session === session.key)
    .sort((a, b) => place(a) - place(b));
}

export function list(
  tx: Transaction,
  row: SnapshotRow,
  index = sessionOf(tx, row).nextIndex,
): void {
  row.index = index;
  sessionOf(tx, row).nextIndex = index + 1;
}

/** A new snapshot never has an unlisted state as its parent. */
export function nearestListed(tx: Transaction, id: string | null): string | null {
  const row = snapshotAt(tx, id);
  return row === undefined || row.index >= 0 ? id : row.parent;
}

/** A state as it is stored. */
export function toStored(plain: State): StoredState {
  const state = fromPlainState(plain);
  return { state: toPlainState(state), stateHash: hashState(state) };
}

const nothing = toStored({});

/** The state that a run has reached, as far as others can see. */
export function reached(tx: Transaction, run: RunRow): StoredState {
  const { state, stateHash } = run.checkpoint ?? snapshotAt(tx, run.base) ?? nothing;
  return { state, stateHash };
}

/** A session with, at any depth, the sessions of the sub-agents that were started in it. */
export function withSubSessions({ data }: Transaction, root: SessionRow): readonly SessionRow[] {
  const found = new Set([root]);
  for (const parent of found) {
    for (const other of Object.values(data.sessions)) {
      const { startedBy, scope } = other;
      if (
        startedBy?.sessionId === parent.id &&
        startedBy.agent === parent.scope.agent &&
        scope.owner === parent.scope.owner
      ) {
        found.add(other);
      }
    }
  }
  return [...found];
}

export function createSession(
  tx: Transaction,
  scope: Scope,
  id: string,
  origin: Pick<SessionInfo, 'startedBy' | 'forkedFrom'> & { readonly createdAt?: number } = {},
): SessionRow {
  const { startedBy, forkedFrom, createdAt = tx.now } = origin;
  const session: SessionRow = {
    key: keyOf(scope, id),
    scope: { agent: scope.agent, ...(scope.owner !== undefined && { owner: scope.owner }) },
    id,
    createdAt,
    updatedAt: createdAt,
    ...(startedBy && { startedBy }),
    ...(forkedFrom && { forkedFrom }),
    head: null,
    nextIndex: 0,
    run: null,
  };
  tx.data.sessions[session.key] = session;
  return session;
}

/** Deletes a session with everything that belongs to it, and returns how many snapshots it had. */
export function dropSession(tx: Transaction, { key }: SessionRow): number {
  const { sessions, snapshots, runs, events, dead, requests } = tx.data;
  const ids = Object.values(snapshots).filter((row) => row.session === key);
  for (const table of [snapshots, runs, events, dead, requests] as const) {
    for (const [id, row] of Object.entries(table)) {
      if (row.session !== key) continue;
      delete table[id];
      tx.emit(id);
    }
  }
  delete sessions[key];
  return ids.length;
}
