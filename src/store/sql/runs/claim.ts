import { isSnapshotId } from '../../../protocol/ids.ts';
import type { Claim, ClaimRequest, RunRequest, Scope } from '../../contract/store.ts';
import {
  type ClaimDecision,
  type ClaimFacts,
  decideClaim,
  toClaim,
} from '../../rules/decide-claim.ts';
import { taken } from '../../rules/errors.ts';
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
import { uuidBytes } from '../values/bytes.ts';
import { fromStatus, toMode } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { expireRun } from './end-run.ts';
import { hasLeftInbox } from './inbox.ts';
import { type HolderRow, holderColumns, holderFact } from './open-run.ts';
import { claimKeys, freeRequests, requestFacts } from './requests.ts';
import { type StartRow, startColumns, startFact, totalsOfFailed } from './start-row.ts';

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

/** A run that was accepted, what was decided, and where its session stands. */
interface Claimed {
  readonly claim: Claim;
  readonly decision: ClaimDecision<number, number>;
  readonly place: { readonly session: number; readonly branchEnd: number | null };
}

/** Accepts a run: see {@link RunSupport.claim}. */
export function* claim(scope: Scope, request: ClaimRequest, context: StateContext): Plan<Claimed> {
  const { runId, sessionId, requests } = request;
  const id = uuidBytes(runId);
  const { facts, session, branchEnd } = yield* readClaim(scope, request, id);
  const decision = decideClaim(facts, request);
  for (const displaced of decision.displaced) yield* expireRun(displaced, context);
  yield* freeRequests(requests, facts.requests);
  const row = session ?? (yield* createSession(scope, sessionId, request));
  const start = decision.start?.key ?? null;
  const place = requestPlace(homeIn(scope, sessionId), runId);
  const sealed = toRequest(request, place, context.cipher);
  const { mode, worker, ttl } = request;
  const values = [id, row, toMode(mode), worker, sealed, decision.turnIndex, start, ttl];
  yield* run(insertRun, ...values);
  yield* claimKeys(id, [...scopeKey(scope), sessionId], requests);
  const made = yield* describe(scope, request, decision);
  return { claim: made, decision, place: { session: row, branchEnd } };
}

/** The answer to an accepted run. */
export function* describe(
  scope: Scope,
  { runId, sessionId, limited, keepInbox }: ClaimRequest,
  decision: ClaimDecision<number, number>,
): Plan<Claim> {
  const failedTotals =
    limited === true
      ? yield* totalsOfFailed(decision.start, { ...decision, scope, sessionId })
      : undefined;
  const steered = keepInbox === true && (yield* hasLeftInbox(scope, sessionId));
  return toClaim({ runId, attempt: 1, sessionId }, { ...decision, failedTotals, steered });
}

/** Refuses an id that a snapshot or a run has. */
export function* checkUnused(snapshotId: string): Plan<void> {
  if (yield* isUsed(uuidBytes(snapshotId))) throw taken(snapshotId);
}

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

/** The stored part of a request, encrypted. */
export function toRequest(
  { init, inputs, context, version, keepInbox, undo }: RunRequest,
  place: string,
  cipher: Cipher,
): SqlValue {
  return cipher.encrypt(JSON.stringify({ init, inputs, context, version, keepInbox, undo }), place);
}

/** The session of a claim, its head and its run. */
interface SessionRow extends HolderRow, StartRow {
  readonly row_id: number;
  readonly next_index: number;
  readonly branch_end: number | null;
  /** Whether a snapshot or a run has the reserved id. */
  readonly is_taken: number;
}

interface FoundRow extends StartRow {
  readonly session_id: string;
  readonly status: number;
}

const selectSession = readUnderLock<SessionRow>(
  'claim_session',
  (d) => `
    SELECT ${d.now} AS now, z.row_id, z.next_index, z.branch_end, ${startColumns(d)}, ${holderColumns},
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $4)
        OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = $4) THEN 1 ELSE 0 END AS is_taken
    FROM @sessions z LEFT JOIN @snapshots s ON s.row_id = z.head LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);
const selectStartById = statement<FoundRow>(
  'claim_start_by_id',
  (d) => `
   SELECT ${startColumns(d)}, z.id AS session_id, s.status
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

/** Facts of a claim, and the row id of its session with the snapshot that was placed last in it. */
export interface ReadClaim {
  readonly facts: ClaimFacts<number, number>;
  readonly session: number | undefined;
  readonly branchEnd: number | null;
}

/** Reads what the rules of a claim have to know. Keys are read first, and then the session, under its lock. */
function* readClaim(scope: Scope, request: ClaimRequest, runId: Uint8Array): Plan<ReadClaim> {
  const requests = yield* requestFacts(request.requests);
  const row = yield* first(selectSession, ...scopeKey(scope), request.sessionId, runId);
  const isTaken = row === undefined ? yield* isUsed(runId) : row.is_taken === 1;
  const session =
    row === undefined
      ? null
      : { head: yield* startFact(row), nextIndex: row.next_index, run: holderFact(row) };
  const from =
    request.from === 'head' || request.from === null
      ? null
      : yield* readStart(scope, request.from.snapshotId);
  // Without a session and without keys there is nothing that could have expired.
  const now = row?.now ?? requests.now;
  return {
    facts: { now, requests: requests.facts, isTaken, session, from },
    session: row?.row_id,
    branchEnd: row?.branch_end ?? null,
  };
}

/** Whether a snapshot or a run has this id. */
export function* isUsed(id: Uint8Array): Plan<boolean> {
  return (yield* first(selectTaken, id)) !== undefined;
}

function* readStart(scope: Scope, snapshotId: string): Plan<ClaimFacts<number, number>['from']> {
  if (!isSnapshotId(snapshotId)) return null;
  const values = [uuidBytes(snapshotId), ...scopeKey(scope)] as const;
  const row = yield* first(selectStartById, ...values);
  if (row !== undefined) {
    const snapshot = yield* startFact(row);
    return { sessionId: row.session_id, status: fromStatus(row.status), snapshot };
  }
  const run = yield* first(selectRunSession, ...values);
  return run === undefined
    ? null
    : { sessionId: run.session_id, status: 'pending', snapshot: null };
}
