import type {
  Claim,
  ClaimRequest,
  ParentRef,
  RunRequest,
  Scope,
  Totals,
} from '../../contract/store.ts';
import { headMoved, notFound, notSucceeded, taken } from '../../rules/errors.ts';
import { checkScope, checkSessionId, checkSnapshotId, isSnapshotId } from '../../rules/ids.ts';
import type { Cipher } from '../content/cipher.ts';
import { homeIn, requestPlace } from '../content/places.ts';
import {
  first,
  insertion,
  one,
  type Plan,
  readUnderLock,
  run,
  type SqlValue,
  statement,
} from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code, fromFinish, fromStatus, fromTotals, toMode } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { checkFree, displace, type HolderRow, holderColumns } from './holder.ts';
import { addRequests, freeRequests } from './requests.ts';

/** The snapshot that a run goes on from. */
export interface StartRow {
  readonly start_row_id: number | null;
  readonly start_id: Uint8Array | null;
  readonly start_turn: number | null;
  readonly start_finish: number | null;
  readonly start_idx: number | null;
  readonly start_totals: string | null;
  readonly start_answered: number;
}

/** What a claim looks at before it writes: the session, its head as the start, its run. */
interface ClaimRow extends HolderRow, StartRow {
  readonly row_id: number;
  readonly next_index: number;
  /** Whether the reserved id is another snapshot's or run's. */
  readonly is_taken: number;
}

interface FoundRow extends StartRow {
  readonly session_id: string;
  readonly status: number;
}

// Whether a succeeded snapshot goes on from `s` already is looked up for interrupted ones only; see `withAnswer`.
/** The columns of the snapshot `s` that a run goes on from. */
export const startColumns = `s.row_id AS start_row_id, s.id AS start_id, s.turn AS start_turn, s.finish AS start_finish,
  s.idx AS start_idx, s.totals AS start_totals,
  CASE WHEN s.finish = ${code.interrupted} AND EXISTS (
    SELECT 1 FROM @snapshots a
    WHERE a.session = s.session AND a.parent = s.row_id AND a.status = ${code.succeeded})
  THEN 1 ELSE 0 END AS start_answered`;

const selectSession = readUnderLock<ClaimRow>(
  'claim_session',
  (d) => `
    SELECT ${d.now} AS now, z.row_id, z.next_index, ${startColumns}, ${holderColumns},
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $4)
        OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = $4) THEN 1 ELSE 0 END AS is_taken
    FROM @sessions z LEFT JOIN @snapshots s ON s.row_id = z.head LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);
const selectStart = statement<StartRow>(
  'claim_start',
  `SELECT ${startColumns} FROM @snapshots s WHERE s.row_id = $1`,
);
const selectStartById = statement<FoundRow>(
  'claim_start_by_id',
  `SELECT ${startColumns}, z.id AS session_id, s.status
   FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
   WHERE s.id = $1 AND z.owner = $2 AND z.agent = $3`,
);
const selectRunSession = statement<{ session_id: string }>(
  'claim_run_session',
  `SELECT z.id AS session_id FROM @runs r JOIN @sessions z ON z.row_id = r.session
   WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3`,
);
const selectTaken = statement<{ found: number }>(
  'claim_taken',
  'SELECT 1 AS found FROM @snapshots WHERE id = $1 UNION ALL SELECT 1 FROM @runs WHERE id = $1',
);
const selectFailedTotals = statement<{ totals: string }>(
  'claim_failed_totals',
  `SELECT f.totals FROM @sessions z LEFT JOIN @snapshots s ON s.row_id = $4
   LEFT JOIN @snapshots l ON l.row_id = CASE WHEN s.idx IS NULL THEN s.parent ELSE s.row_id END
   JOIN @snapshots f ON f.session = z.row_id AND f.idx > COALESCE(l.idx, -1)
   WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 AND f.status IN (${code.failed}, ${code.aborted})
     AND f.totals IS NOT NULL
     AND (f.parent = l.row_id OR (f.parent IS NULL AND l.row_id IS NULL))
   ORDER BY f.idx DESC LIMIT 1`,
);
const selectAnswer = statement<{ found: number }>(
  'claim_answer',
  `WITH RECURSIVE c(row_id, event) AS (
     SELECT a.row_id, a.event FROM @snapshots s JOIN @snapshots a ON a.session = s.session AND a.parent = s.row_id
     WHERE s.row_id = $1 AND a.status = ${code.succeeded}
     UNION ALL
     SELECT a.row_id, a.event FROM c JOIN @snapshots b ON b.row_id = c.row_id
     JOIN @snapshots a ON a.session = b.session AND a.parent = b.row_id
     WHERE c.event = ${code.toolIterationEnd} AND a.status = ${code.succeeded})
   SELECT COUNT(*) AS found FROM c WHERE c.event <> ${code.toolIterationEnd}`,
);
const insertSession = insertion(
  'claim_new_session',
  (d) => `
    INSERT INTO @sessions(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    VALUES($1, $2, $3, $4, $5, $6, ${d.now}, ${d.now})`,
);
const insertRun = statement(
  'claim_new_run',
  (d) => `
    INSERT INTO @runs(id, session, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
    VALUES($1, $2, 1, $3, $4, $5, $6, $7, $7, $8, ${d.now}, ${d.now})`,
);

/** Accepts a run: see {@link RunSupport.claim}. */
export function* claim(scope: Scope, request: ClaimRequest, context: StateContext): Plan<Claim> {
  const runId = uuidBytes(request.runId);
  yield* freeRequests(request.requests, context);
  const session = yield* first(selectSession, ...scopeKey(scope), request.sessionId, runId);
  if (session === undefined) yield* checkUnused(request.runId);
  else if (session.is_taken === 1) throw taken(request.runId);
  const start = request.from === 'head' ? session : yield* startOf(scope, request, request.from);
  if (session !== undefined) checkFree(session, request.sessionId);
  checkHead(session, request.expectHead);
  if (session !== undefined) yield* displace(session, context);
  const rowId = session?.row_id ?? (yield* createSession(scope, request.sessionId, request));
  const turn = start?.start_turn ?? -1;
  yield* run(
    insertRun,
    runId,
    rowId,
    toMode(request.mode),
    request.worker,
    toRequest(
      request,
      requestPlace(homeIn(scope, request.sessionId), request.runId),
      context.cipher,
    ),
    turn + 1,
    start?.start_row_id ?? null,
    request.ttl,
  );
  yield* addRequests(runId, rowId, request.requests);
  const claimed = toClaim(request, {
    fresh: session === undefined,
    start: start && (yield* withAnswer(start)),
    headId: session?.start_id ?? null,
    nextIndex: session === undefined ? 0 : nextIndex(session, start),
  });
  if (request.limited !== true || session === undefined) return claimed;
  const where = { scope, sessionId: request.sessionId, nextIndex: session.next_index };
  return withFailed(claimed, yield* totalsOfFailed(start, where));
}

/**
 * The snapshot that a run goes on from, with a closer look at whether it was answered: a snapshot within a turn is no answer
 * before the turn has ended well. Needed only where something goes on from an interrupted one already.
 */
export function* withAnswer<Row extends StartRow>(start: Row): Plan<Row> {
  if (start.start_answered !== 1 || start.start_row_id === null) return start;
  const { found } = yield* one(selectAnswer, start.start_row_id);
  return { ...start, start_answered: found > 0 ? 1 : 0 };
}

/** The claim with what failed turns have used. */
export function withFailed(claimed: Claim, failedTotals: Totals | undefined): Claim {
  return failedTotals === undefined ? claimed : { ...claimed, failedTotals };
}

type Start = Pick<StartRow, 'start_row_id' | 'start_idx'> | undefined;

// Most sessions have nothing behind their head, and nothing has to be looked up.
function mayHaveFailed(start: Start, nextIndex: number): boolean {
  if (start === undefined || start.start_row_id === null) return nextIndex > 0;
  return start.start_idx === null || nextIndex > start.start_idx + 1;
}

/** The totals of the last failed or aborted turn that started from a snapshot: they include it, and those before it. */
export function* totalsOfFailed(
  start: Start,
  where: { readonly scope: Scope; readonly sessionId: string; readonly nextIndex: number },
): Plan<Totals | undefined> {
  if (!mayHaveFailed(start, where.nextIndex)) return undefined;
  const values = [...scopeKey(where.scope), where.sessionId, start?.start_row_id ?? null] as const;
  const row = yield* first(selectFailedTotals, ...values);
  return fromTotals(row?.totals ?? null);
}

/** Refuses a claim that no store can keep. */
export function checkClaim(scope: Scope, request: ClaimRequest): void {
  checkScope(scope);
  checkSessionId(request.sessionId);
  checkSnapshotId(request.runId);
}

/** Refuses an id that anything in the store has already. */
export function* checkUnused(snapshotId: string): Plan<void> {
  if ((yield* first(selectTaken, uuidBytes(snapshotId))) !== undefined) throw taken(snapshotId);
}

/** The snapshot that a run was claimed from. */
export function* startRow(rowId: number): Plan<StartRow | undefined> {
  return yield* first(selectStart, rowId);
}

function* startOf(
  scope: Scope,
  { sessionId }: ClaimRequest,
  { snapshotId }: { readonly snapshotId: string },
): Plan<StartRow> {
  if (!isSnapshotId(snapshotId)) throw notFound('snapshot', snapshotId);
  const values = [uuidBytes(snapshotId), ...scopeKey(scope)] as const;
  const row = yield* first(selectStartById, ...values);
  const found = row ?? (yield* first(selectRunSession, ...values));
  if (found?.session_id !== sessionId) throw notFound('snapshot', snapshotId);
  if (row?.status === code.succeeded) return row;
  throw notSucceeded(snapshotId, row === undefined ? 'pending' : fromStatus(row.status));
}

function checkHead(session: ClaimRow | undefined, expected: string | null | undefined): void {
  const headId = session?.start_id ?? null;
  const found = headId === null ? null : uuidText(headId);
  if (expected !== undefined && expected !== found) throw headMoved(found);
}

// What an expired run leaves behind is listed, and so is an unlisted head before the head leaves it.
function nextIndex(session: ClaimRow, start: StartRow | undefined): number {
  const left = session.run_session === null ? 0 : 1;
  const isLeft = session.start_row_id !== null && session.start_row_id !== start?.start_row_id;
  return session.next_index + left + (isLeft && session.start_idx === null ? 1 : 0);
}

/** A new empty session. */
export function* createSession(
  scope: Scope,
  sessionId: string,
  { startedBy }: Pick<ClaimRequest, 'startedBy'> = {},
): Plan<number> {
  const values = [...scopeKey(scope), sessionId, ...startedByValues(startedBy)];
  return (yield* one(insertSession, ...values)).row_id;
}

/** The columns of who started a session. */
export function startedByValues(
  startedBy: ClaimRequest['startedBy'],
): readonly [string | null, string | null, string | null] {
  if (startedBy === undefined) return [null, null, null];
  return [startedBy.agent, startedBy.sessionId, startedBy.snapshotId ?? null];
}

/** What is kept of a request, sealed. */
export function toRequest(
  { init, inputs, context, version }: RunRequest,
  place: string,
  cipher: Cipher,
): SqlValue {
  return cipher.encrypt(JSON.stringify({ init, inputs, context, version }), place);
}

/** The claim as its holder sees it. */
export function toClaim(
  { runId, sessionId }: ClaimRequest,
  known: {
    readonly fresh: boolean;
    readonly start: StartRow | undefined;
    readonly headId: Uint8Array | null;
    readonly nextIndex: number;
  },
): Claim {
  const parent = known.start && toParent(known.start);
  return {
    runId,
    attempt: 1,
    sessionId,
    fresh: known.fresh,
    ...(parent === undefined ? {} : { parent }),
    ...(known.headId === null ? {} : { headId: uuidText(known.headId) }),
    nextIndex: known.nextIndex,
  };
}

/** What a turn must know of the snapshot it goes on from. */
export function toParent(row: StartRow): ParentRef | undefined {
  if (row.start_id === null) return undefined;
  const finishReason = fromFinish(row.start_finish);
  const totals = fromTotals(row.start_totals);
  return {
    snapshotId: uuidText(row.start_id),
    turnIndex: row.start_turn ?? 0,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(finishReason === 'interrupted' ? { answered: row.start_answered === 1 } : {}),
    ...(row.start_idx === null ? { listed: false } : {}),
    ...(totals === undefined ? {} : { totals }),
  };
}
