import { isSnapshotId } from '../../session/ids.ts';
import { statement } from '../sql/database/query.ts';
import { type StartRow, startColumns } from '../sql/runs/claim.ts';
import type { RunRow } from '../sql/runs/run-record.ts';
import type { TakenRows, TakenSession, TakeOver } from '../sql/runs/take-over.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import { code } from '../sql/values/codes.ts';
import type { PostgresDatabase } from './database.ts';
import { now } from './dialect.ts';

/*
 * Takes runs by their ids and reads all that is needed to begin with them, in one statement. It waits for no disk: what is
 * written under the new attempt does, and makes this last as well. $1 runs, $2 the name they wait under, $3 agents,
 * $4 worker, $5 ttl
 */
const takeRuns = statement<RunRow & TakenSession & StartRow>(
  'quick_take',
  `WITH off AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
   found AS MATERIALIZED (
     SELECT r.session FROM off CROSS JOIN @runs r JOIN @sessions z ON z.no = r.session
     WHERE r.id = ANY($1::bytea[]) AND r.mode <> ${code.attached}
       AND (${now} - r.heartbeat >= r.ttl OR r.worker = $2::text) AND z.agent = ANY($3::text[])
     ORDER BY r.session FOR UPDATE OF r),
   taken AS (
     UPDATE @runs r SET attempt = r.attempt + 1, worker = $4::text, ttl = $5::bigint, heartbeat = ${now}
     FROM found f WHERE r.session = f.session RETURNING r.*)
   SELECT ${now} AS now, t.session, t.id, z.owner, z.agent, z.id AS session_id, t.attempt, t.mode, t.worker, t.request,
     t.start, t.base, g.id AS base_id, t.checkpoint, t.inputs_done, t.mid_turn, t.stopping, t.ttl, t.heartbeat,
     t.created_at, z.head, h.id AS head_id, h.idx AS head_idx, z.next_index, ${startColumns}
   FROM taken t JOIN @sessions z ON z.no = t.session
   LEFT JOIN @snapshots g ON g.no = t.base
   LEFT JOIN @snapshots h ON h.no = z.head
   LEFT JOIN @snapshots s ON s.no = t.start
   ORDER BY t.created_at, t.id`,
);

/** Takes over the runs it is asked for in one round trip. */
export async function quickTake(
  db: PostgresDatabase,
  request: TakeOver & { readonly runIds: readonly string[] },
): Promise<readonly TakenRows[]> {
  const ids = request.runIds.filter(isSnapshotId).map(uuidBytes);
  if (ids.length === 0) return [];
  const { waitingAs = '', agents, worker, ttl } = request;
  const rows = await db.query(takeRuns, [ids, waitingAs, agents, worker, ttl]);
  return rows.map((row) => ({
    row,
    start: row.start_no === null ? undefined : row,
    session: row,
  }));
}
