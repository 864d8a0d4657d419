import type { Claim, ClaimRequest, RequestMark, Scope } from '../contract/store.ts';
import { isSnapshotId } from '../rules/ids.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import { homeIn, requestPlace } from '../sql/content/places.ts';
import { statement } from '../sql/database/query.ts';
import {
  startedByValues,
  toClaim,
  toRequest,
  totalsOfFailed,
  withAnswer,
  withFailed,
} from '../sql/runs/claim.ts';
import { fromHex, uuidBytes } from '../sql/values/bytes.ts';
import { toMode } from '../sql/values/codes.ts';
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
  const { head_row_id, head_idx, start_row_id } = turn;
  const leaves = head_row_id !== null && head_idx === null && head_row_id !== start_row_id;
  const found = { ...turn, start_id: bytesOf(turn.start_id) };
  const start = turn.start_answered === 1 ? await db.read(() => withAnswer(found)) : found;
  const claimed = toClaim(request, {
    fresh: turn.fresh,
    start,
    headId: bytesOf(turn.head_id),
    nextIndex: turn.next_index + (leaves ? 1 : 0),
  });
  if (request.limited !== true) return claimed;
  const where = { scope, sessionId: request.sessionId, nextIndex: turn.next_index };
  return withFailed(claimed, await db.read(() => totalsOfFailed(turn, where)));
}

function keyValues(requests: readonly RequestMark[]): readonly (readonly Uint8Array[])[] {
  return [requests.map(({ key }) => fromHex(key)), requests.map(({ digest }) => fromHex(digest))];
}

function bytesOf(hex: string | null): Uint8Array | null {
  return hex === null ? null : fromHex(hex);
}
