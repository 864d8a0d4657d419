import type { Claim, ClaimRequest, RequestMark, Scope } from '../contract/store.ts';
import { toClaim } from '../rules/decide-claim.ts';
import { isSnapshotId } from '../rules/ids.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import { homeIn, requestPlace } from '../sql/content/places.ts';
import { statement } from '../sql/database/query.ts';
import { startedByValues, toRequest } from '../sql/runs/claim.ts';
import { hasLeftInbox } from '../sql/runs/left-inbox.ts';
import { isAnswered, toStartFact, totalsOfFailed } from '../sql/runs/start-row.ts';
import { fromHex, uuidBytes, uuidText } from '../sql/values/bytes.ts';
import { code, toMode } from '../sql/values/codes.ts';
import { scopeKey } from '../sql/values/scope.ts';
import type { PostgresDatabase } from './database.ts';
import type { ClaimAnswer } from './functions/claim-turn.ts';

const claim = statement<{ readonly claimed: string | null }>(
  'quick_claim',
  'SELECT @claim_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS claimed',
);

const claimUnderKeys = statement<{ readonly claimed: string | null }>(
  'quick_claim_request',
  `SELECT @claim_run_with_keys($15, $16, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS claimed`,
);

/** Claims in one round trip; `undefined` when it is not the usual case. */
export async function quickClaim(
  db: PostgresDatabase,
  scope: Scope,
  request: ClaimRequest,
  cipher: Cipher,
): Promise<Claim | undefined> {
  const { from, expectHead } = request;
  if (from !== 'head' && !isSnapshotId(from.snapshotId)) return undefined;
  if (typeof expectHead === 'string' && !isSnapshotId(expectHead)) return undefined;
  const { requests = [] } = request;
  const values = [
    ...scopeKey(scope),
    request.sessionId,
    uuidBytes(request.runId),
    toMode(request.mode),
    request.worker,
    toRequest(request, requestPlace(homeIn(scope, request.sessionId), request.runId), cipher),
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
  const turn = JSON.parse(row.claimed) as ClaimAnswer;
  const found = {
    ...turn,
    start_id: bytesOf(turn.start_id),
    // The function does not say whether the start is an edit.
    start_answered: mayBeEdit(turn) ? 1 : turn.start_answered,
  };
  const answered = found.start_answered === 1 && (await db.read(() => isAnswered(found)));
  const start = toStartFact(found, answered);
  const { sessionId } = request;
  const where = { scope, sessionId, nextIndex: turn.next_index };
  const failedTotals =
    request.limited === true ? await db.read(() => totalsOfFailed(start, where)) : undefined;
  const steered =
    request.keepInbox === true && (await db.read(() => hasLeftInbox(scope, sessionId)));
  return toClaim(
    { runId: request.runId, attempt: 1, sessionId },
    {
      start,
      head: headOf(turn),
      isNewSession: turn.fresh,
      nextIndex: turn.next_index,
      failedTotals,
      steered,
    },
  );
}

function mayBeEdit({ start_finish, start_parent }: ClaimAnswer): boolean {
  return start_finish === code.interrupted && start_parent !== null;
}

function headOf({ head_row_id, head_id, head_idx }: ClaimAnswer) {
  if (head_row_id === null || head_id === null) return null;
  return { key: head_row_id, isListed: head_idx !== null, snapshotId: uuidText(fromHex(head_id)) };
}

function keyValues(requests: readonly RequestMark[]): readonly (readonly Uint8Array[])[] {
  return [requests.map(({ key }) => fromHex(key)), requests.map(({ digest }) => fromHex(digest))];
}

function bytesOf(hex: string | null): Uint8Array | null {
  return hex === null ? null : fromHex(hex);
}
