import type {
  ClaimFacts,
  ClaimRequest,
  CommitFacts,
  CommitWrite,
  HolderFact,
  NamedFacts,
  RequestFact,
  Scope,
  SnapshotFact,
  StartFact,
} from 'waymark/store';
import {
  findRun,
  findSession,
  findSnapshot,
  isUsed,
  type RequestRow,
  type RunRow,
  rowsOf,
  type SessionRow,
  type SnapshotRow,
  sessionOf,
  snapshotAt,
  type Transaction,
} from './tables.ts';

/** The rules decide from facts. `Key` and `Run` are this store's own handles: ids. */
export function claimFacts(
  tx: Transaction,
  scope: Scope,
  { runId, sessionId, from, requests = [] }: ClaimRequest,
): ClaimFacts<string, string> {
  const session = findSession(tx, scope, sessionId);
  return {
    now: tx.now,
    requests: requests.map(({ key }) => requestFact(tx, tx.data.requests[key])),
    isTaken: isUsed(tx, runId),
    session:
      session === undefined
        ? null
        : {
            head: startFact(tx, session.head),
            nextIndex: session.nextIndex,
            run: holderFact(tx, session),
          },
    from: from === 'head' || from === null ? null : fromFact(tx, scope, from.snapshotId),
  };
}

export function commitFacts(
  tx: Transaction,
  run: RunRow,
  { snapshotId, parentId }: CommitWrite,
): CommitFacts<string> {
  const session = sessionOf(tx, run);
  const own = run.isListed ? snapshotAt(tx, run.id) : undefined;
  const parent = parentId === undefined ? undefined : tx.data.snapshots[parentId];
  const { snapshots, runs } = tx.data;
  return {
    runId: run.id,
    sessionId: session.id,
    own:
      own === undefined
        ? null
        : { key: own.id, index: own.index, parent: own.parent, claimedFrom: claimedFrom(tx, run) },
    start: run.start,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    head: snapshotFact(snapshotAt(tx, session.head)),
    nextIndex: session.nextIndex,
    parent:
      parent === undefined
        ? null
        : { ...fact(parent), inSession: parent.session === session.key, status: parent.status },
    isTaken: snapshotId in snapshots || (snapshotId !== run.id && snapshotId in runs),
  };
}

/** The listed snapshot that a run was claimed from. */
function claimedFrom(tx: Transaction, run: RunRow): string | null {
  const start = snapshotAt(tx, run.start);
  if (start === undefined) return null;
  return start.index >= 0 ? start.id : start.parent;
}

export function namedFacts(
  tx: Transaction,
  scope: Scope,
  snapshotId: string,
): NamedFacts<string> & { readonly run: HolderFact<string> | null } {
  const row = findSnapshot(tx, scope, snapshotId);
  const session = row && sessionOf(tx, row);
  const head = snapshotAt(tx, session?.head ?? null);
  return {
    snapshot: row === undefined ? null : { ...fact(row), status: row.status },
    isReserved: findRun(tx, scope, snapshotId) !== undefined,
    sessionId: session?.id ?? 'unknown',
    head: head === undefined ? null : { ...fact(head), id: head.id },
    run: session === undefined ? null : holderFact(tx, session),
  };
}

export function holderFact(tx: Transaction, session: SessionRow): HolderFact<string> | null {
  const run = session.run === null ? undefined : tx.data.runs[session.run];
  return run === undefined ? null : toHolder(tx, run);
}

function toHolder(tx: Transaction, run: RunRow): HolderFact<string> {
  limitHeartbeat(tx, run);
  const { id, heartbeatAt, ttl, request } = run;
  return { key: id, runId: id, mode: request.mode, heartbeatAt, ttl };
}

/** A heartbeat from a clock that is ahead by more than the ttl counts from now on, so that the run can expire. */
export function limitHeartbeat({ now }: Transaction, run: RunRow): void {
  if (run.heartbeatAt - now > run.ttl) run.heartbeatAt = now;
}

export function startFact(tx: Transaction, id: string | null): StartFact<string> | null {
  const row = snapshotAt(tx, id);
  if (row === undefined) return null;
  return {
    ...fact(row),
    index: row.index,
    snapshotId: row.id,
    turnIndex: row.turnIndex,
    finishReason: row.finishReason,
    totals: row.totals,
    isAnswered: row.finishReason === 'interrupted' && isAnswered(tx, row),
  };
}

function fact(row: SnapshotRow): SnapshotFact<string> {
  return { key: row.id, isListed: row.index >= 0, parent: row.parent };
}

function snapshotFact(row: SnapshotRow | undefined): SnapshotFact<string> | null {
  return row === undefined ? null : fact(row);
}

function fromFact(
  tx: Transaction,
  scope: Scope,
  snapshotId: string,
): ClaimFacts<string, string>['from'] {
  const row = findSnapshot(tx, scope, snapshotId);
  const run = row === undefined ? findRun(tx, scope, snapshotId) : undefined;
  const owner = row ?? run;
  if (owner === undefined) return null;
  return {
    sessionId: sessionOf(tx, owner).id,
    status: row?.status ?? 'pending',
    snapshot: row === undefined ? null : startFact(tx, row.id),
  };
}

function requestFact(tx: Transaction, row: RequestRow | undefined): RequestFact<string> | null {
  if (row === undefined) return null;
  const { runId, sessionId, digest, at, receipt } = row;
  const run = tx.data.runs[runId];
  return {
    runId,
    sessionId,
    digest,
    at,
    hasReceipt: receipt !== undefined,
    status: tx.data.snapshots[runId]?.status ?? null,
    run: run === undefined ? null : toHolder(tx, run),
  };
}

/** Whether a turn that succeeded continues from an interrupted snapshot already. */
function isAnswered(tx: Transaction, row: SnapshotRow): boolean {
  // An edit waits for the answer to the snapshot it edits.
  const edited = row.event === 'edit' ? snapshotAt(tx, row.parent) : undefined;
  if (edited?.finishReason === 'interrupted') return isAnswered(tx, edited);
  return rowsOf(tx, sessionOf(tx, row)).some(({ status, event, parent }) => {
    if (status !== 'succeeded' || isWithin(event)) return false;
    let start = snapshotAt(tx, parent);
    while (start !== undefined && start !== row && isWithin(start.event)) {
      start = snapshotAt(tx, start.parent);
    }
    return start === row;
  });
}

/** Whether a snapshot is no end of a turn. */
function isWithin(event: SnapshotRow['event']): boolean {
  return event === 'toolIterationEnd' || event === 'edit';
}
