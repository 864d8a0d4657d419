import { isSnapshotId } from '../../protocol/ids.ts';
import type { Claim, ClaimRequest, RequestMark, Scope } from '../contract/store.ts';
import { type ClaimFacts, decideClaim, type StartFact, toClaim } from '../rules/decide-claim.ts';
import { accepted } from '../rules/decision.ts';
import { homeIn, requestPlace } from '../sql/content/places.ts';
import { statement } from '../sql/database/query.ts';
import type { StateContext } from '../sql/history/state-rows.ts';
import { startedByValues, toRequest } from '../sql/runs/claim.ts';
import { hasLeftInbox } from '../sql/runs/inbox.ts';
import { type StartRow, startFact, toStartFact, totalsOfFailed } from '../sql/runs/start-row.ts';
import { fromHex, uuidBytes } from '../sql/values/bytes.ts';
import { code, toMode } from '../sql/values/codes.ts';
import { scopeKey } from '../sql/values/scope.ts';
import type { PostgresDatabase } from './database.ts';
import type { ClaimAnswer, ClaimedRow } from './functions/claim-turn.ts';

const claim = statement<{ readonly claimed: string | null }>(
  'quick_claim',
  'SELECT @open_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS claimed',
);

const claimUnderKeys = statement<{ readonly claimed: string | null }>(
  'quick_claim_request',
  `SELECT @open_run_with_keys($15, $16, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS claimed`,
);

/**
 * Claims in one round trip; `undefined` when it is not the usual case. The function has found nothing in the way of the claim; what the
 * claim comes to, the rules say.
 */
export async function quickClaim(
  db: PostgresDatabase,
  scope: Scope,
  request: ClaimRequest,
  { cipher, held }: StateContext,
): Promise<Claim | undefined> {
  const { from, expectHead, runId, sessionId, requests = [] } = request;
  // The function starts from the head or from a snapshot.
  if (from === null || (from !== 'head' && !isSnapshotId(from.snapshotId))) return undefined;
  if (typeof expectHead === 'string' && !isSnapshotId(expectHead)) return undefined;
  const values = [
    ...scopeKey(scope),
    sessionId,
    uuidBytes(runId),
    toMode(request.mode),
    request.worker,
    toRequest(request, requestPlace(homeIn(scope, sessionId), runId), cipher),
    request.ttl,
    expectHead === undefined ? 'false' : 'true',
    typeof expectHead === 'string' ? uuidBytes(expectHead) : null,
    ...startedByValues(request.startedBy),
    from === 'head' ? null : uuidBytes(from.snapshotId),
  ];
  const [row] =
    requests.length === 0
      ? await db.query(claim, values)
      : await db.query(claimUnderKeys, [...values, ...keyValues(requests)]);
  if (row === undefined || row.claimed === null) return undefined;
  const answer = JSON.parse(row.claimed) as ClaimAnswer;
  const start = await db.read(() => startFact(startRow(answer)));
  const decision = accepted(decideClaim(factsOf(answer, start, request), request));
  const failedTotals =
    request.limited === true
      ? await db.read(() => totalsOfFailed(start, { ...decision, scope, sessionId }))
      : undefined;
  const steered =
    request.keepInbox === true && (await db.read(() => hasLeftInbox(scope, sessionId)));
  held.claimed(request, decision, { session: answer.row_id, branchEnd: answer.branch_end });
  return toClaim({ runId, attempt: 1, sessionId }, { ...decision, failedTotals, steered });
}

/** The facts of a claim that the function has accepted: no run holds the session, and neither the id nor a key is used. */
function factsOf(
  { fresh, next_index, head }: ClaimAnswer,
  start: StartFact<number> | null,
  { from, sessionId, requests = [] }: ClaimRequest,
): ClaimFacts<number, never> {
  const startsFromHead = from === 'head';
  return {
    now: 0,
    requests: requests.map(() => null),
    isTaken: false,
    session: fresh
      ? null
      : {
          head: startsFromHead ? start : toStartFact(asStart(head, 0), false),
          nextIndex: next_index,
          run: null,
        },
    from: startsFromHead ? null : { sessionId, status: 'succeeded', snapshot: start },
  };
}

// The function does not say whether the start is an edit.
function startRow({ start, answered }: ClaimAnswer): StartRow {
  const mayBeEdit = start?.finish === code.interrupted && start.parent !== null;
  return asStart(start, mayBeEdit ? 1 : answered);
}

function asStart(row: ClaimedRow | null, answered: number): StartRow {
  return {
    start_row_id: row?.row_id ?? null,
    start_id: row?.id ?? null,
    start_turn: row?.turn ?? null,
    start_finish: row?.finish ?? null,
    start_idx: row?.idx ?? null,
    start_parent: row?.parent ?? null,
    start_totals: row?.totals ?? null,
    start_answered: answered,
  };
}

function keyValues(requests: readonly RequestMark[]): readonly (readonly Uint8Array[])[] {
  return [requests.map(({ key }) => fromHex(key)), requests.map(({ digest }) => fromHex(digest))];
}
