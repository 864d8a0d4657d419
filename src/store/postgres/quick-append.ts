import { isSnapshotId } from '../../protocol/ids.ts';
import { packEvents } from '../rules/event-body.ts';
import { journalPlace } from '../sql/content/places.ts';
import { statement } from '../sql/database/query.ts';
import { runHome, type StateContext } from '../sql/history/state-rows.ts';
import type { AppendedEvents } from '../sql/runs/events.ts';
import { hasEvent } from '../sql/runs/journal.ts';
import { hexOf, uuidBytes, uuidText } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import { toPayload } from './listener.ts';

/*
 * Events of several runs and the hint that there are some, in one statement that waits for no disk: a notification in a
 * durable transaction would make all commits of the database wait for each other.
 * $1 [{id, held, attempt, seq, last, body}], $2-3 hint
 */
const appendEvents = statement<{ run: Uint8Array }>(
  'quick_append',
  `WITH off AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
   given AS (
     SELECT decode(id, 'hex') AS id, held, attempt, seq, last, body FROM off CROSS JOIN json_to_recordset($1::json)
       AS g(id text, held integer, attempt integer, seq integer, last integer, body text)),
   held AS MATERIALIZED (
     SELECT r.id, r.session, g.attempt, g.seq, g.last, g.body
     FROM given g JOIN @runs r ON r.id = g.id AND r.attempt = g.held FOR SHARE OF r),
   written AS (
     INSERT INTO @journal(run, session, attempt, seq, last, body)
     SELECT h.id, h.session, h.attempt, h.seq, h.last, h.body FROM held h
     WHERE NOT ${hasEvent('h.id', 'h.attempt', 'h.seq')}
     ON CONFLICT DO NOTHING RETURNING run),
   hint AS MATERIALIZED (SELECT pg_notify($2::text, $3::text) WHERE EXISTS (SELECT 1 FROM written))
   SELECT w.run, h.told FROM written w CROSS JOIN (SELECT count(*) AS told FROM hint) h`,
);

/** Appends events of runs in one round trip and says so everywhere. Gives those where it was the usual case. */
export async function quickAppend(
  db: PostgresDatabase,
  group: readonly AppendedEvents[],
  context: StateContext,
): Promise<ReadonlySet<AppendedEvents>> {
  // One row a run: the statement does not see what it has written itself.
  const byRun = new Map(group.map((each) => [each.run.runId, each]));
  const rows = [...byRun.values()].flatMap((each) => rowOf(each, context) ?? []);
  if (rows.length === 0 || byRun.size < group.length) return new Set();
  const hints = group.map(({ run }) => ({ kind: 'events', id: run.runId }) as const);
  const written = await db.query(appendEvents, [
    JSON.stringify(rows),
    db.channel,
    toPayload(hints, db.sender),
  ]);
  return new Set(written.flatMap(({ run }) => byRun.get(uuidText(run)) ?? []));
}

function rowOf({ run, events }: AppendedEvents, context: StateContext): object | undefined {
  const [begin] = events;
  const end = events.at(-1);
  if (begin === undefined || end === undefined || begin.attempt !== end.attempt) return undefined;
  const home = isSnapshotId(run.runId) ? runHome(run.runId, context) : undefined;
  if (home === undefined) return undefined;
  const row = { attempt: begin.attempt, seq: begin.seq, last: end.seq };
  const body = context.cipher.encrypt(packEvents(events), journalPlace(home, run.runId, row));
  return { id: hexOf(uuidBytes(run.runId)), held: run.attempt, ...row, body };
}
