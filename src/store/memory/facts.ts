import { endsTurn } from '../../protocol/snapshot.ts';
import type { ClaimRequest, CommitWrite, Scope } from '../contract/store.ts';
import type { ClaimFacts, RequestFact, SnapshotFact, StartFact } from '../rules/decide-claim.ts';
import type { CommitFacts } from '../rules/decide-commit.ts';
import type { NamedFacts } from '../rules/decide-timeline.ts';
import type { HolderFact } from '../rules/holder.ts';
import {
  findRequest,
  findRun,
  findSession,
  findSnapshot,
  inboxOf,
  isUsed,
  limitHeartbeat,
  nearestListed,
  type RequestRow,
  type RunRow,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

export function commitFacts(
  tables: Tables,
  run: RunRow,
  { snapshotId, parentId }: CommitWrite,
): CommitFacts<SnapshotRow> {
  const { session, row } = run;
  const { head } = session;
  const parent = parentId === undefined ? undefined : tables.snapshots.get(parentId);
  return {
    runId: run.id,
    sessionId: session.id,
    own:
      row === undefined
        ? null
        : {
            key: row,
            index: row.index,
            parent: row.parent ?? null,
            claimedFrom: nearestListed(run.start) ?? null,
          },
    start: run.start ?? null,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    head: head === undefined ? null : snapshotFact(head),
    nextIndex: session.nextIndex,
    parent:
      parent === undefined
        ? null
        : { ...snapshotFact(parent), inSession: parent.session === session, status: parent.status },
    inbox: inboxOf(run).length,
    isTaken:
      tables.snapshots.has(snapshotId) || (snapshotId !== run.id && tables.runs.has(snapshotId)),
  };
}

export function claimFacts(
  tables: Tables,
  scope: Scope,
  { runId, sessionId, from, requests = [] }: ClaimRequest,
): ClaimFacts<SnapshotRow, RunRow> {
  const now = tables.clock.now();
  const session = findSession(tables, scope, sessionId);
  return {
    now,
    requests: requests.map(({ key }) => requestFact(tables, findRequest(tables, key))),
    isTaken: isUsed(tables, runId),
    session: session === undefined ? null : sessionFact(session, now),
    from: from === 'head' || from === null ? null : fromFact(tables, scope, from.snapshotId),
  };
}

function sessionFact(session: SessionRow, now: number): ClaimFacts<SnapshotRow, RunRow>['session'] {
  return {
    head: session.head === undefined ? null : startFact(session.head),
    nextIndex: session.nextIndex,
    run: holderFact(session, now),
  };
}

export function holderFact({ run }: SessionRow, now: number): HolderFact<RunRow> | null {
  if (run === undefined) return null;
  limitHeartbeat(run, now);
  return toHolder(run);
}

function toHolder(run: RunRow): HolderFact<RunRow> {
  const { id: runId, heartbeatAt, ttl } = run;
  return { key: run, runId, mode: run.request.mode, heartbeatAt, ttl };
}

export function startFact(row: SnapshotRow): StartFact<SnapshotRow> {
  return {
    ...snapshotFact(row),
    index: row.index,
    snapshotId: row.id,
    turnIndex: row.turnIndex,
    finishReason: row.finishReason,
    totals: row.totals,
    isAnswered: row.finishReason === 'interrupted' && isAnswered(row),
  };
}

function snapshotFact(row: SnapshotRow): SnapshotFact<SnapshotRow> {
  return { key: row, isListed: row.index >= 0, parent: row.parent ?? null };
}

export function namedFacts(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
): NamedFacts<SnapshotRow> {
  const row = findSnapshot(tables, scope, snapshotId);
  const head = row?.session.head;
  return {
    snapshot: row === undefined ? null : { ...snapshotFact(row), status: row.status },
    isReserved: findRun(tables, scope, snapshotId) !== undefined,
    sessionId: row?.session.id ?? '',
    head: head === undefined ? null : { ...snapshotFact(head), id: head.id },
  };
}

function fromFact(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
): ClaimFacts<SnapshotRow, RunRow>['from'] {
  const row = findSnapshot(tables, scope, snapshotId);
  if (row !== undefined) {
    return { sessionId: row.session.id, status: row.status, snapshot: startFact(row) };
  }
  const run = findRun(tables, scope, snapshotId);
  return run === undefined
    ? null
    : { sessionId: run.session.id, status: 'pending', snapshot: null };
}

function requestFact(tables: Tables, request: RequestRow | undefined): RequestFact<RunRow> | null {
  if (request === undefined) return null;
  const { runId, session, digest, at, receipt } = request;
  const run = tables.runs.get(runId);
  return {
    runId,
    sessionId: session.id,
    digest,
    at,
    hasReceipt: receipt !== undefined,
    status: tables.snapshots.get(runId)?.status ?? null,
    run: run === undefined ? null : toHolder(run),
  };
}

function isAnswered(asked: SnapshotRow): boolean {
  const row = unedited(asked);
  const continuesFrom = (other: SnapshotRow): boolean =>
    other.status === 'succeeded' && endsTurn(other.event) && isStartOf(row, other);
  const { listed, head } = row.session;
  return (head !== undefined && continuesFrom(head)) || listed.some(continuesFrom);
}

/** The snapshot that asked: an edit waits for the answer to the snapshot it edits. */
function unedited(row: SnapshotRow): SnapshotRow {
  const { event, parent } = row;
  return event === 'edit' && parent?.finishReason === 'interrupted' ? unedited(parent) : row;
}

/** Whether a turn started from a snapshot, or from an edit of it. */
function isStartOf(row: SnapshotRow, { parent }: SnapshotRow): boolean {
  let at = parent;
  while (at !== undefined && at !== row && !endsTurn(at.event)) at = at.parent;
  return at === row;
}
