import { inGroups } from '../../core/async/groups.ts';
import { isWaymarkError } from '../../core/error.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { type QueueHandoff, type RunRef, type RunRequest, waitingTtl } from '../contract/store.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import { type Home, requestPlace } from '../sql/content/places.ts';
import type { Driver } from '../sql/database/driver.ts';
import { all, statement } from '../sql/database/query.ts';
import { runHome, type StateContext } from '../sql/history/state-rows.ts';
import { toRequest } from '../sql/runs/claim.ts';
import {
  noHash,
  openHash,
  type Reading,
  type SnapshotRow,
  stateColumns,
  toSnapshot,
} from '../sql/snapshots/snapshot-row.ts';
import { hexOf, uuidBytes, uuidText } from '../sql/values/bytes.ts';
import { code } from '../sql/values/codes.ts';
import { now } from './dialect.ts';

/** A detached run, handed over to any free worker. */
interface Sent {
  readonly ref: RunRef;
  readonly home: Home;
  readonly request: RunRequest;
  readonly away: QueueHandoff;
}

type SentRow = SnapshotRow & { readonly now: number; readonly base_id: Uint8Array | null };

/** Runs of one transaction at most. */
const most = 50;

/*
 * Lists the pending snapshots of runs and releases the runs. What is not usual is left as it is: a run that was lost, one
 * that is listed already, one that continues from elsewhere than the head. $1 [{id, attempt, request, worker}], $2 no state
 */
const sendRuns = statement<SentRow>(
  'send_runs',
  `WITH given AS (
     SELECT decode(id, 'hex') AS id, attempt, request, worker
     FROM json_to_recordset($1::json) AS g(id text, attempt integer, request text, worker text)),
   held AS MATERIALIZED (
     SELECT r.session, r.id, r.turn, r.base, r.created_at, z.owner, z.agent, z.id AS session_id, z.next_index, v.request, v.worker
     FROM given v JOIN @runs r ON r.id = v.id AND r.attempt = v.attempt JOIN @sessions z ON z.row_id = r.session
     WHERE r.own_snapshot IS NULL AND r.base IS NOT DISTINCT FROM z.head
     ORDER BY r.session FOR UPDATE OF z, r),
   made AS (
     INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, ${stateColumns}, state_hash, created_at, updated_at)
     SELECT h.id, h.session, CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END, h.next_index, h.turn,
       ${code.detach}, ${code.pending}, g.branch, COALESCE(g.branch_length, 0), g.view, COALESCE(g.length, 0),
       g.custom, g.artifacts, COALESCE(g.state_hash, $2::bytea), h.created_at, ${now}
     FROM held h LEFT JOIN @snapshots g ON g.row_id = h.base
     RETURNING row_id, id, session, parent, idx, turn, event, status, state_hash, created_at, updated_at),
   counted AS (
     UPDATE @sessions z SET next_index = z.next_index + 1 FROM made m WHERE z.row_id = m.session RETURNING z.row_id),
   sent AS (
     UPDATE @runs r SET mode = ${code.detached}, request = h.request, own_snapshot = m.row_id, heartbeat = ${now},
       ttl = ${waitingTtl}, worker = h.worker
     FROM held h JOIN made m ON m.session = h.session WHERE r.session = h.session
     RETURNING r.session, r.heartbeat, r.ttl)
   SELECT ${now} AS now, m.id, h.owner, h.agent, h.session_id, b.id AS base_id, p.id AS parent_id, m.idx, m.turn, m.event, m.status,
     NULL::smallint AS finish, m.created_at, m.updated_at, NULL::bigint AS ttl, NULL::text AS usage,
     NULL::text AS error, NULL::text AS label, m.state_hash, s.heartbeat AS run_heartbeat, s.ttl AS run_ttl
   FROM made m JOIN held h ON h.session = m.session JOIN sent s ON s.session = m.session
   LEFT JOIN @snapshots p ON p.row_id = m.parent LEFT JOIN @snapshots b ON b.row_id = h.base`,
);

/**
 * Detaches runs that are handed over, those of the same moment in one transaction. `undefined`: the run is detached by itself, as it is
 * not usual, or another transaction was in the way.
 */
export function createSender(
  db: Driver,
  context: StateContext,
): (sent: Omit<Sent, 'home'>) => Promise<Snapshot | undefined> {
  const { cipher } = context;
  const sendAll = async (group: readonly Sent[]): Promise<readonly (Snapshot | undefined)[]> => {
    let rows = new Map<string, SentRow>();
    const given = JSON.stringify(group.map((each) => toGiven(each, cipher)));
    await db.write(
      function* () {
        const found = yield* all(sendRuns, given, noHash);
        rows = new Map(found.map((row) => [uuidText(row.id), row]));
      },
      {
        async within(transaction) {
          const found = group.filter(({ ref }) => rows.has(ref.runId));
          await Promise.all(found.map(({ away }) => away.within?.(transaction)));
        },
      },
    );
    return group.map(({ ref }) => {
      const row = rows.get(ref.runId);
      return row && toSnapshot(row, readingOf(row, cipher), cipher);
    });
  };
  const send = inGroups(async (group: readonly Sent[]) => {
    try {
      return await sendAll(group);
    } catch (error) {
      // The outcome is unknown; and a single request gets its own error.
      if (group.length === 1 || (isWaymarkError(error) && error.status === 'UNAVAILABLE')) {
        throw error;
      }
      // One of them spoils it for all: each goes the long way by itself.
      return group.map(() => undefined);
    }
  }, most);
  return async ({ ref, ...sent }) => {
    // The values are encrypted before they are sent, which takes the secret that the open store has.
    await db.open();
    const home = isSnapshotId(ref.runId) ? runHome(ref.runId, context) : undefined;
    return home && (await send({ ref, home, ...sent }));
  };
}

// The row of an open run shows what the run has reached, which is its base.
function readingOf(row: SentRow, cipher: Cipher): Reading {
  const base = { id: row.base_id, state_hash: row.base_id === null ? null : row.state_hash };
  return { now: row.now, orphaned: false, stateHash: openHash(row, base, cipher) };
}

function toGiven({ ref, home, request, away }: Sent, cipher: Cipher): object {
  return {
    id: hexOf(uuidBytes(ref.runId)),
    attempt: ref.attempt,
    request: String(toRequest(request, requestPlace(home, ref.runId), cipher)),
    worker: away.worker,
  };
}
