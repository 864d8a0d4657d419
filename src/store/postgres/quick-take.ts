import { isSnapshotId } from '../rules/ids.ts';
import { anySuspects } from '../rules/suspects.ts';
import { statement } from '../sql/database/query.ts';
import type { RunRow } from '../sql/runs/run-record.ts';
import { type StartRow, startColumns } from '../sql/runs/start-row.ts';
import {
  hasCrashed,
  type TakenRows,
  type TakenSession,
  type TakeOver,
} from '../sql/runs/take-over.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import { code } from '../sql/values/codes.ts';
import type { PostgresDatabase } from './database.ts';
import { now } from './dialect.ts';

const crashed = hasCrashed(now, '$4::text', '$2::text');

/*
 * Takes runs by their ids and reads all that is needed to begin with them, in one statement. It waits for no disk: what is
 * written under the new attempt does, and makes this last as well. $1 runs, $2 the name they wait under, $3 agents,
 * $4 worker, $5 ttl, $6 how many suspects, $7 with how many crashes, $8 attempts
 */
const takeRuns = statement<RunRow & TakenSession & StartRow>(
  'quick_take',
  `WITH off AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
   found AS MATERIALIZED (
     SELECT r.session, r.created_at, ${crashed} AS has_crashed,
       r.crashes + CASE WHEN ${crashed} THEN 1 ELSE 0 END AS crashes
     FROM off CROSS JOIN @runs r JOIN @sessions z ON z.row_id = r.session
     WHERE r.id = ANY($1::bytea[]) AND r.mode <> ${code.attached}
       AND (${now} - r.heartbeat >= r.ttl OR r.worker = $2::text) AND z.agent = ANY($3::text[])
     ORDER BY r.session FOR UPDATE OF r),
   picked AS (
     SELECT f.*, row_number() OVER (
       PARTITION BY f.crashes > 0 AND f.crashes < $8::integer ORDER BY f.crashes, f.created_at) AS place
     FROM found f WHERE f.crashes <= $7::integer OR f.crashes >= $8::integer),
   taken AS (
     UPDATE @runs r SET attempt = r.attempt + 1, worker = $4::text, ttl = $5::bigint, heartbeat = ${now},
       crashes = f.crashes,
       crashed = CASE WHEN f.has_crashed THEN COALESCE(r.crashed || ',', '') || r.attempt || ':' || r.heartbeat
         ELSE r.crashed END
     FROM picked f WHERE r.session = f.session
       AND (f.crashes = 0 OR f.crashes >= $8::integer OR f.place <= $6::bigint) RETURNING r.*)
   SELECT ${now} AS now, t.session, t.id, z.owner, z.agent, z.id AS session_id, t.attempt, t.mode, t.worker, t.request,
     t.start, t.base, g.id AS base_id, t.checkpoint, t.inputs_done, t.mid_turn, t.stopping, t.crashed, t.ttl, t.heartbeat,
     t.created_at, z.head, h.id AS head_id, h.idx AS head_idx, z.next_index, ${startColumns}
   FROM taken t JOIN @sessions z ON z.row_id = t.session
   LEFT JOIN @snapshots g ON g.row_id = t.base
   LEFT JOIN @snapshots h ON h.row_id = z.head
   LEFT JOIN @snapshots s ON s.row_id = t.start
   ORDER BY t.created_at, t.id`,
);

/** Takes over the runs it is asked for in one round trip. */
export async function quickTake(
  db: PostgresDatabase,
  request: TakeOver & { readonly runIds: readonly string[] },
): Promise<readonly TakenRows[]> {
  const ids = request.runIds.filter(isSnapshotId).map(uuidBytes);
  if (ids.length === 0) return [];
  const { waitingAs = '', agents, worker, ttl, suspects = anySuspects } = request;
  const { limit, maxCrashes, attempts } = suspects;
  const values = [ids, waitingAs, agents, worker, ttl, limit, maxCrashes, attempts];
  const rows = await db.query(takeRuns, values);
  return rows.map((row) => ({
    row,
    start: row.start_row_id === null ? undefined : row,
    session: row,
  }));
}
