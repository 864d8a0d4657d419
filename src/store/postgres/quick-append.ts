import type { RunEvent, RunRef } from '../contract/store.ts';
import { packEvents } from '../rules/event-body.ts';
import { isSnapshotId } from '../rules/ids.ts';
import { journalPlace } from '../sql/content/places.ts';
import { statement } from '../sql/database/query.ts';
import { runHome, type StateContext } from '../sql/history/state-rows.ts';
import { isEvent } from '../sql/runs/journal.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import { toPayload } from './listener.ts';

/*
 * Events and the hint that there are some, in one statement that waits for no disk: a notification in a durable
 * transaction would make all commits of the database wait for each other. $1 run, $2 attempt, $3-6 events, $7-8 hint
 */
const appendEvents = statement<{ found: number; written: number }>(
  'quick_append',
  `WITH off AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
   held AS MATERIALIZED (
     SELECT r.id, r.session FROM off CROSS JOIN @runs r WHERE r.id = $1::bytea AND r.attempt = $2::integer FOR SHARE OF r),
   written AS (
     INSERT INTO @journal(run, session, attempt, seq, last, body)
     SELECT h.id, h.session, $3::integer, $4::integer, $5::integer, $6::text FROM held h
     WHERE NOT EXISTS (SELECT 1 FROM @journal e WHERE e.run = h.id AND ${isEvent}
       AND (e.attempt > $3::integer OR (e.attempt = $3::integer AND e.last >= $4::integer)))
     ON CONFLICT DO NOTHING RETURNING run),
   hint AS MATERIALIZED (SELECT pg_notify($7::text, $8::text) FROM written)
   SELECT (SELECT count(*) FROM held) AS found, (SELECT count(*) FROM written) AS written,
     (SELECT count(*) FROM hint) AS told`,
);

/** Appends events in one round trip and says so everywhere; `false` when it is not the usual case. */
export async function quickAppend(
  db: PostgresDatabase,
  { runId, attempt }: RunRef,
  events: readonly RunEvent[],
  context: StateContext,
): Promise<boolean> {
  const [begin] = events;
  const end = events.at(-1);
  if (begin === undefined || end === undefined || begin.attempt !== end.attempt) return false;
  if (!isSnapshotId(runId)) return false;
  const home = runHome(runId, context);
  if (home === undefined) return false;
  const row = { attempt: begin.attempt, seq: begin.seq, last: end.seq };
  const body = context.cipher.encrypt(packEvents(events), journalPlace(home, runId, row));
  const [found] = await db.query(appendEvents, [
    uuidBytes(runId),
    attempt,
    begin.attempt,
    begin.seq,
    end.seq,
    body,
    db.channel,
    toPayload([{ kind: 'events', id: runId }], db.sender),
  ]);
  return found !== undefined && found.found > 0 && found.written > 0;
}
