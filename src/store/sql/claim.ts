import { checkScope, checkSessionId, checkSnapshotId, isSnapshotId } from '../../session/ids.ts';
import type { Claim, ClaimRequest, ParentRef, RunRequest, Scope } from '../../session/store.ts';
import { uuidBytes, uuidText } from './bytes.ts';
import { code, fromFinish, fromStatus, fromTotals, toMode } from './codes.ts';
import { headMoved, notFound, notSucceeded, otherSession, taken } from './failures.ts';
import { checkFree, displace, type HolderRow, holderColumns } from './holder.ts';
import { first, one, type Plan, run, type SqlValue, statement } from './query.ts';
import { scopeKey } from './scope.ts';
import type { StateContext } from './state-rows.ts';
import type { Vault } from './vault.ts';

/** What a claim looks at before it writes. */
interface ClaimRow extends HolderRow {
  readonly no: number;
  readonly head: number | null;
  readonly next_index: number;
  readonly head_id: Uint8Array | null;
  readonly head_idx: number | null;
}

/** The snapshot that a run goes on from. */
export interface StartRow {
  readonly no: number;
  readonly id: Uint8Array;
  readonly session: number;
  readonly session_id: string;
  readonly status: number;
  readonly turn: number;
  readonly finish: number | null;
  readonly idx: number | null;
  readonly totals: string | null;
  readonly answered: number;
}

const selectSession = statement<ClaimRow>(
  'claim_session',
  (d) => `
    SELECT ${d.now} AS now, z.no, z.head, z.next_index, h.id AS head_id, h.idx AS head_idx,
      ${holderColumns}
    FROM @sessions z
    LEFT JOIN @snapshots h ON h.no = z.head
    LEFT JOIN @runs r ON r.session = z.no AND r.ended_at IS NULL
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);

/** Whether a succeeded snapshot goes on from `s` already; looked up for interrupted ones only. */
export const answeredColumn = `
  CASE WHEN s.finish = ${code.interrupted} AND EXISTS (
    SELECT 1 FROM @snapshots a
    WHERE a.session = s.session AND a.parent = s.no AND a.status = ${code.succeeded})
  THEN 1 ELSE 0 END AS answered`;

const startColumns = `s.no, s.id, s.session, z.id AS session_id, s.status, s.turn, s.finish, s.idx,
  s.totals, ${answeredColumn}`;

const selectStart = statement<StartRow>(
  'claim_start',
  `SELECT ${startColumns} FROM @snapshots s JOIN @sessions z ON z.no = s.session WHERE s.no = $1`,
);

const selectStartById = statement<StartRow>(
  'claim_start_by_id',
  `SELECT ${startColumns} FROM @snapshots s JOIN @sessions z ON z.no = s.session
   WHERE s.id = $1 AND z.owner = $2 AND z.agent = $3`,
);

const selectRunSession = statement<{ session_id: string }>(
  'claim_run_session',
  `SELECT z.id AS session_id FROM @runs r JOIN @sessions z ON z.no = r.session
   WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3 AND r.ended_at IS NULL`,
);

const selectTaken = statement<{ found: number }>(
  'claim_taken',
  'SELECT 1 AS found FROM @snapshots WHERE id = $1 UNION ALL SELECT 1 FROM @runs WHERE id = $1',
);

const insertSession = statement<{ no: number }>(
  'claim_new_session',
  (d) => `
    INSERT INTO @sessions(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    VALUES($1, $2, $3, $4, $5, $6, ${d.now}, ${d.now}) RETURNING no`,
);

const insertRun = statement(
  'claim_new_run',
  (d) => `
    INSERT INTO @runs(id, session, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
    VALUES($1, $2, 1, $3, $4, $5, $6, $7, $7, $8, ${d.now}, ${d.now})`,
);

/** The snapshot that a run was claimed from. */
export function* startRow(no: number): Plan<StartRow | undefined> {
  return yield* first(selectStart, no);
}

/** Refuses an id that anything in the store has already. */
export function* checkUnused(snapshotId: string): Plan<void> {
  if ((yield* first(selectTaken, uuidBytes(snapshotId))) !== undefined) throw taken(snapshotId);
}

/** Accepts a run: see {@link RunSupport.claim}. */
export function* claim(scope: Scope, request: ClaimRequest, context: StateContext): Plan<Claim> {
  checkClaim(scope, request);
  yield* checkUnused(request.runId);
  const session = yield* first(selectSession, ...scopeKey(scope), request.sessionId);
  const start = yield* startOf(scope, request, session);
  if (session !== undefined) checkFree(session, request.sessionId);
  checkHead(session, request.expectHead);
  if (session !== undefined) yield* displace(session);
  const no = session?.no ?? (yield* createSession(scope, request.sessionId, request));
  const turn = start === undefined ? 0 : start.turn + 1;
  yield* run(
    insertRun,
    uuidBytes(request.runId),
    no,
    toMode(request.mode),
    request.worker,
    toRequest(request, context.vault),
    turn,
    start?.no ?? null,
    request.ttl,
  );
  const leaves = session !== undefined && leavesUnlisted(session, start);
  const left = session === undefined || session.run_no === null ? 0 : 1;
  return {
    runId: request.runId,
    attempt: 1,
    sessionId: request.sessionId,
    fresh: session === undefined,
    ...(start === undefined ? {} : { parent: toParent(start) }),
    ...(session === undefined || session.head_id === null
      ? {}
      : { headId: uuidText(session.head_id) }),
    nextIndex: (session?.next_index ?? 0) + left + (leaves ? 1 : 0),
  };
}

/** Refuses a claim that no store can keep. */
export function checkClaim(scope: Scope, request: ClaimRequest): void {
  checkScope(scope);
  checkSessionId(request.sessionId);
  checkSnapshotId(request.runId);
}

/** A head that is not listed will be, before the first snapshot that goes on from elsewhere. */
function leavesUnlisted(session: ClaimRow, start: StartRow | undefined): boolean {
  return session.head !== null && session.head_idx === null && session.head !== start?.no;
}

function* startOf(
  scope: Scope,
  { from, sessionId }: ClaimRequest,
  session: ClaimRow | undefined,
): Plan<StartRow | undefined> {
  if (from === 'head') {
    const head = session?.head ?? null;
    return head === null ? undefined : yield* one(selectStart, head);
  }
  const { snapshotId } = from;
  if (!isSnapshotId(snapshotId)) throw notFound('snapshot', snapshotId);
  const values = [uuidBytes(snapshotId), ...scopeKey(scope)] as const;
  const row = yield* first(selectStartById, ...values);
  const found = row ?? (yield* first(selectRunSession, ...values));
  if (found === undefined) throw notFound('snapshot', snapshotId);
  if (found.session_id !== sessionId) throw otherSession(snapshotId, found.session_id, sessionId);
  if (row?.status === code.succeeded) return row;
  throw notSucceeded(snapshotId, row === undefined ? 'pending' : fromStatus(row.status));
}

function checkHead(session: ClaimRow | undefined, expected: string | null | undefined): void {
  const headId = session?.head_id ?? null;
  const found = headId === null ? null : uuidText(headId);
  if (expected !== undefined && expected !== found) throw headMoved(found);
}

/** A new empty session. */
export function* createSession(
  scope: Scope,
  sessionId: string,
  { startedBy }: Pick<ClaimRequest, 'startedBy'> = {},
): Plan<number> {
  const { no } = yield* one(
    insertSession,
    ...scopeKey(scope),
    sessionId,
    ...startedByValues(startedBy),
  );
  return no;
}

/** The columns of who started a session. */
export function startedByValues(
  startedBy: ClaimRequest['startedBy'],
): readonly [string | null, string | null, string | null] {
  if (startedBy === undefined) return [null, null, null];
  return [startedBy.agent, startedBy.sessionId, startedBy.snapshotId ?? null];
}

/** What is kept of a request, sealed. */
export function toRequest({ init, inputs, context }: RunRequest, vault: Vault): SqlValue {
  return vault.seal(JSON.stringify({ init, inputs, context }));
}

/** What a turn must know of the snapshot it goes on from. */
export function toParent(row: StartRow): ParentRef {
  const finishReason = fromFinish(row.finish);
  const totals = fromTotals(row.totals);
  return {
    snapshotId: uuidText(row.id),
    turnIndex: row.turn,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(finishReason === 'interrupted' ? { answered: row.answered === 1 } : {}),
    ...(row.idx === null ? { listed: false } : {}),
    ...(totals === undefined ? {} : { totals }),
  };
}
