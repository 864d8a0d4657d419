import { isSnapshotId } from '../../../protocol/ids.ts';
import type { Claim, ClaimRequest, Scope } from '../../contract/store.ts';
import { type ClaimFacts, decideClaim, type StartFact } from '../../rules/decide-claim.ts';
import { homeIn, requestPlace } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import type { Driver } from '../database/driver.ts';
import {
  expect,
  first,
  guard,
  locking,
  type Plan,
  Refused,
  run,
  type SqlValue,
  type Statement,
} from '../database/query.ts';
import { uuidBytes } from '../values/bytes.ts';
import { code, toMode } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { describe, startedByValues, toRequest } from './claim.ts';
import type { RunContext } from './known-runs.ts';
import { claimKeys, expectUnused, keyStatements } from './requests.ts';
import { type StartRow, startColumns, startFact, toStartFact } from './start-row.ts';

// Nothing when the session is there already, or another claim makes it in the same moment.
const insertMissing: Statement<{ row_id: number }> = {
  name: 'claim_missing_session',
  text: (d) => `
    INSERT INTO @sessions(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    SELECT $1, $2, $3, $4, $5, $6, ${d.now}, ${d.now}
    WHERE NOT EXISTS (SELECT 1 FROM @sessions z WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3)
    ON CONFLICT DO NOTHING RETURNING row_id`,
  unlessFound: true,
};
const lockSession = locking(
  'claim_lock',
  (d) => `
    SELECT 1 FROM @sessions z WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);
const lockMade: Statement = { ...lockSession, name: 'claim_lock_made', unlessFound: true };

/** An idle session, its head, and the snapshot that the run starts from, whose number is `row_id`. */
interface IdleRow extends StartRow {
  readonly session: number;
  readonly next_index: number;
  readonly branch_end: number | null;
  readonly row_id: number | null;
  readonly head: number | null;
  readonly head_id: string | null;
  readonly head_idx: number | null;
  readonly head_turn: number | null;
  readonly head_parent: number | null;
}

const idleText = (d: Dialect, head: string, start: string): string => `
  SELECT z.row_id AS session, z.next_index, z.branch_end, s.row_id, ${startColumns(d)},
    z.head, ${d.hex(`${head}.id`)} AS head_id, ${head}.idx AS head_idx, ${head}.turn AS head_turn, ${head}.parent AS head_parent
  FROM @sessions z LEFT JOIN @snapshots ${head} ON ${head}.row_id = z.head ${start}
  WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3
    AND (CAST($4 AS INTEGER) = 0 OR ${head}.id IS NOT DISTINCT FROM $5)`;

const idleAtHead = guard<IdleRow>('claim_idle', (d) => idleText(d, 's', ''));
const idleAt = guard<IdleRow>('claim_idle_at', (d) =>
  idleText(
    d,
    'h',
    `JOIN @snapshots s ON s.id = $6 AND s.session = z.row_id AND s.status = ${code.succeeded}`,
  ),
);
const insertIdleRun = guard<{ session: number }>(
  'claim_idle_run',
  (d) => `
    INSERT INTO @runs(id, session, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
    SELECT $4, z.row_id, 1, $5, $6, $7, COALESCE(s.turn, -1) + 1, s.row_id, s.row_id, $8, ${d.now}, ${d.now}
    FROM @sessions z LEFT JOIN @snapshots s ON s.row_id = $9
    WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3
      AND NOT EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $4)
    ON CONFLICT DO NOTHING RETURNING session`,
);

export const claimStatements = {
  frequent: [lockSession, insertMissing, lockMade, idleAtHead, insertIdleRun],
  others: [idleAt, ...keyStatements],
};

/** Accepts a run of an idle session in one write, before anything is known of it; `undefined` when something is in the way. */
export async function claimIdle(
  db: Driver,
  scope: Scope,
  request: ClaimRequest,
  context: RunContext,
): Promise<Claim | undefined> {
  const { from, expectHead, runId, sessionId, mode } = request;
  if (from === null || (from !== 'head' && !isSnapshotId(from.snapshotId))) return undefined;
  if (typeof expectHead === 'string' && !isSnapshotId(expectHead)) return undefined;
  // Encryption depends on a secret that the open store has.
  await db.open();
  const place = requestPlace(homeIn(scope, sessionId), runId);
  const sealed = toRequest(request, place, context.cipher);
  let written: Idle;
  try {
    const plan = () => writeIdle(scope, request, sealed);
    written = await db.write(plan, { guarded: 'claim', durable: mode !== 'attached' });
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
  const { row, isNew } = written;
  const start = await db.read(() => startFact(row));
  const head = from === 'head' ? start : headFact(row);
  const facts: ClaimFacts<number, never> = {
    now: 0,
    requests: (request.requests ?? []).map(() => null),
    isTaken: false,
    session: isNew ? null : { head, nextIndex: row.next_index, run: null },
    from: from === 'head' ? null : { sessionId, status: 'succeeded', snapshot: start },
  };
  const decision = decideClaim(facts, request);
  const { session, branch_end: branchEnd } = row;
  context.known.claimed(scope, request, decision, { session, branchEnd });
  return await db.read(() => describe(scope, request, decision));
}

interface Idle {
  readonly row: IdleRow;
  readonly isNew: boolean;
}

function* writeIdle(scope: Scope, request: ClaimRequest, sealed: SqlValue): Plan<Idle> {
  const { from, expectHead, runId, sessionId, requests } = request;
  const id = uuidBytes(runId);
  const key = [...scopeKey(scope), sessionId] as const;
  yield* expectUnused(requests);
  const mayBeNew = from === 'head' && typeof expectHead !== 'string';
  yield* run(lockSession, ...key);
  const made = mayBeNew
    ? yield* first(insertMissing, ...key, ...startedByValues(request.startedBy))
    : undefined;
  if (mayBeNew) yield* run(lockMade, ...key);
  const head = typeof expectHead === 'string' ? uuidBytes(expectHead) : null;
  const expected = [...key, expectHead === undefined ? 0 : 1, head];
  const row =
    from === 'head' || from === null
      ? yield* expect(idleAtHead, ...expected)
      : yield* expect(idleAt, ...expected, uuidBytes(from.snapshotId));
  const { mode, worker, ttl } = request;
  yield* expect(insertIdleRun, ...key, id, toMode(mode), worker, sealed, ttl, row.row_id);
  yield* claimKeys(id, key, requests);
  return { row, isNew: made !== undefined };
}

function headFact(row: IdleRow): StartFact<number> | null {
  const head = {
    start_row_id: row.head,
    start_id: row.head_id,
    start_idx: row.head_idx,
    start_turn: row.head_turn,
    start_parent: row.head_parent,
    start_finish: null,
    start_totals: null,
    start_answered: 0,
  };
  return toStartFact(head, false);
}
