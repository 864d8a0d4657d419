import { isSnapshotId } from '../../session/ids.ts';
import type { Claim, ClaimRequest, Scope } from '../../session/store.ts';
import type { Vault } from '../sql/content/vault.ts';
import { statement } from '../sql/database/query.ts';
import {
  type StartRow,
  startColumns,
  startedByValues,
  toClaim,
  toRequest,
} from '../sql/runs/claim.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import { code, toMode } from '../sql/values/codes.ts';
import { scopeKey } from '../sql/values/scope.ts';
import type { PostgresDatabase } from './database.ts';
import { now } from './dialect.ts';

interface ClaimedRow extends StartRow {
  readonly fresh: number;
  readonly head_no: number | null;
  readonly head_id: Uint8Array | null;
  readonly head_idx: number | null;
  readonly next_index: number;
}

const isUnused = `NOT EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $4::bytea)
  AND NOT EXISTS (SELECT 1 FROM @runs t WHERE t.id = $4::bytea)`;

/*
 * One statement for a session that nobody works on. It locks the session's row, so that it sees the head that a commit in
 * the same moment leaves; the snapshot of that head it may not see yet, and then it writes nothing. Whatever is not usual
 * writes nothing either and is looked at again in a transaction, which knows what to say.
 * $1-3 session, $4 run, $5 mode, $6 worker, $7 request, $8 ttl, $9 expect a head, $10 which, $11-13 started by
 */
const claimFrom = (start: string): string => `
  WITH off AS MATERIALIZED (
    SELECT set_config('synchronous_commit',
      CASE WHEN $5::smallint = ${code.attached} THEN 'off' ELSE current_setting('synchronous_commit') END, true)),
  known AS MATERIALIZED (
    SELECT no, head, next_index FROM @sessions
    WHERE owner = $1::text AND agent = $2::text AND id = $3::text FOR UPDATE),
  made AS (
    INSERT INTO @sessions(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    SELECT $1::text, $2::text, $3::text, $11::text, $12::text, $13::text, ${now}, ${now}
    WHERE NOT EXISTS (SELECT 1 FROM known) AND ${start === '' ? 'true' : 'false'}
      AND NOT ($9::boolean AND $10::bytea IS NOT NULL) AND ${isUnused}
    ON CONFLICT DO NOTHING RETURNING no),
  z AS (
    SELECT k.no, k.head, k.next_index, 0 AS fresh FROM known k
    UNION ALL SELECT m.no, NULL, 0, 1 FROM made m),
  start AS (
    SELECT ${startColumns} FROM z JOIN @snapshots s ON ${start === '' ? 's.no = z.head' : start}),
  head AS (SELECT h.no, h.id, h.idx FROM z JOIN @snapshots h ON h.no = z.head),
  claimed AS (
    INSERT INTO @runs(session, id, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
    SELECT z.no, $4::bytea, 1, $5::smallint, $6::text, $7::text, COALESCE(b.start_turn, -1) + 1,
      b.start_no, b.start_no, $8::bigint, ${now}, ${now}
    FROM off CROSS JOIN z LEFT JOIN start b ON true LEFT JOIN head h ON true
    WHERE (z.head IS NULL OR h.no IS NOT NULL) AND ${start === '' ? 'true' : 'b.start_no IS NOT NULL'}
      AND ${isUnused}
      AND (NOT $9::boolean OR h.id IS NOT DISTINCT FROM $10::bytea)
    ON CONFLICT DO NOTHING RETURNING session)
  SELECT z.fresh, z.next_index, h.no AS head_no, h.id AS head_id, h.idx AS head_idx, b.*
  FROM claimed JOIN z ON z.no = claimed.session LEFT JOIN start b ON true LEFT JOIN head h ON true`;

const claimHead = statement<ClaimedRow>('quick_claim', claimFrom(''));
const claimSnapshot = statement<ClaimedRow>(
  'quick_claim_from',
  claimFrom(`s.session = z.no AND s.id = $14::bytea AND s.status = ${code.succeeded}`),
);

/** Claims in one round trip; `undefined` when it is not the usual case. */
export async function quickClaim(
  db: PostgresDatabase,
  scope: Scope,
  request: ClaimRequest,
  vault: Vault,
): Promise<Claim | undefined> {
  const { from, expectHead } = request;
  const isFromHead = from === 'head';
  if (!isFromHead && !isSnapshotId(from.snapshotId)) return undefined;
  if (typeof expectHead === 'string' && !isSnapshotId(expectHead)) return undefined;
  const rows = await db.query(isFromHead ? claimHead : claimSnapshot, [
    ...scopeKey(scope),
    request.sessionId,
    uuidBytes(request.runId),
    toMode(request.mode),
    request.worker,
    toRequest(request, vault),
    request.ttl,
    expectHead === undefined ? 'false' : 'true',
    typeof expectHead === 'string' ? uuidBytes(expectHead) : null,
    ...startedByValues(request.startedBy),
    ...(isFromHead ? [] : [uuidBytes(from.snapshotId)]),
  ]);
  const [row] = rows;
  if (row === undefined) return undefined;
  const leaves = row.head_no !== null && row.head_idx === null && row.head_no !== row.start_no;
  return toClaim(request, {
    fresh: row.fresh === 1,
    start: row,
    headId: row.head_id,
    nextIndex: row.next_index + (leaves ? 1 : 0),
  });
}
