import { isSnapshotId } from '../../../protocol/ids.ts';
import type { ClaimRequest, Scope } from '../../contract/store.ts';
import type { ClaimFacts } from '../../rules/decide-claim.ts';
import { first, type Plan, readUnderLock, statement } from '../database/query.ts';
import { uuidBytes } from '../values/bytes.ts';
import { fromStatus } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { type HolderRow, holderColumns, holderFact } from './holder.ts';
import { requestFacts } from './requests.ts';
import { type StartRow, startColumns, startFact } from './start-row.ts';

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

/** What a claim depends on, and the row id of its session with the snapshot that was placed last in it. */
export interface ReadClaim {
  readonly facts: ClaimFacts<number, number>;
  readonly session: number | undefined;
  readonly branchEnd: number | null;
}

/** Reads what the rules of a claim have to know. Keys are read first, and then the session, under its lock. */
export function* readClaim(
  scope: Scope,
  request: ClaimRequest,
  runId: Uint8Array,
): Plan<ReadClaim> {
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
