import type { WaymarkError } from '../../../core/error.ts';
import { isSnapshotId } from '../../../protocol/ids.ts';
import type { EventCursor, EventSupport, RunEvent, RunRef, Scope } from '../../contract/store.ts';
import { notHeld } from '../../rules/errors.ts';
import { isAfter, packEvents, unpackEvents } from '../../rules/event-body.ts';
import type { Cipher } from '../content/cipher.ts';
import { type Home, type HomeRow, homeOf, journalPlace } from '../content/places.ts';
import { all, first, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import { runHome, type StateContext } from '../history/state-rows.ts';
import { uuidBytes } from '../values/bytes.ts';
import { hasEvent, isEvent, journal } from '../values/journal.ts';
import { scopeKey } from '../values/scope.ts';
import type { Held } from './inbox.ts';

const insertEvents = statement(
  'events_append',
  `INSERT INTO @journal(run, session, attempt, seq, last, body) VALUES($1, $2, $3, $4, $5, $6)
   ON CONFLICT DO NOTHING`,
);
const selectOpen = statement<Held>(
  'events_run',
  (d) => `
    SELECT r.id, r.session, z.owner, z.agent, z.id AS session_id
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    WHERE r.id = $1 AND r.attempt = $2 ${d.lock('r')}`,
);
const selectLast = statement<{ attempt: number; last: number }>(
  'events_last',
  `SELECT attempt, last FROM @journal WHERE run = $1 AND ${isEvent}
   ORDER BY attempt DESC, seq DESC LIMIT 1`,
);
const selectKept = statement<{ ended: number } & HomeRow>(
  'events_kept',
  `SELECT k.ended, z.owner, z.agent, z.id AS session_id FROM (
     SELECT session, 0 AS ended FROM @runs WHERE id = $1
     UNION ALL SELECT session, 1 FROM @journal WHERE run = $1 AND attempt = ${journal.end}) k
   JOIN @sessions z ON z.row_id = k.session WHERE z.owner = $2 AND z.agent = $3`,
);
const selectEvents = statement<{ attempt: number; seq: number; last: number; body: SqlValue }>(
  'events_read',
  // Begins with the row that holds the event of the cursor, or would: the rows before it are not read.
  `SELECT attempt, seq, last, body FROM @journal
   WHERE run = $1 AND (attempt, seq) >= ($2, COALESCE(
     (SELECT max(seq) FROM @journal WHERE run = $1 AND attempt = $2 AND seq <= $3), 0))
     AND attempt < ${journal.end} AND (attempt > $2 OR last > $3)
   ORDER BY attempt, seq LIMIT $4`,
);

type EventContext = Pick<StateContext, 'cipher'>;

/** Appends to the events of a run that is held. Those that are there already are left out. */
export function* appendEvents(
  held: Held,
  events: readonly RunEvent[],
  context: EventContext,
): Plan<void> {
  const last = yield* first(selectLast, held.id);
  yield* appendAfter(held, events, last && { attempt: last.attempt, seq: last.last }, context);
}

/** Events as rows, one an attempt: attempt, first and last number, body. */
function packed(
  events: readonly RunEvent[],
  home: Home,
  id: Uint8Array,
  cipher: Cipher,
): readonly (readonly [number, number, number, SqlValue])[] {
  const groups = [...Map.groupBy(events, (event) => event.attempt)];
  return groups.map(([attempt, group]) => {
    const [seq, last] = [group[0]?.seq ?? 0, group.at(-1)?.seq ?? 0];
    const body = cipher.encrypt(packEvents(group), journalPlace(home, id, { attempt, seq, last }));
    return [attempt, seq, last, body] as const;
  });
}

export interface AppendedEvents {
  readonly run: RunRef;
  readonly events: readonly RunEvent[];
}

/** Appends events that come after the last one of a run that is held. */
export function* appendAfter(
  held: Held,
  events: readonly RunEvent[],
  last: EventCursor | undefined,
  { cipher }: EventContext,
): Plan<void> {
  const fresh = events.filter((event) => isAfter(event, last));
  for (const row of packed(fresh, homeOf(held), held.id, cipher)) {
    yield* run(insertEvents, held.id, held.session, ...row);
  }
}

// Adds nothing when the run is lost, or has some of the events, or later ones.
const insertHeld = statement<{ seq: number }>(
  'events_append_held',
  (d) => `
    INSERT INTO @journal(run, session, attempt, seq, last, body)
    SELECT r.id, r.session, CAST($3 AS INTEGER), CAST($4 AS INTEGER), CAST($5 AS INTEGER), $6 FROM @runs r
    WHERE r.id = $1 AND r.attempt = $2 AND NOT ${hasEvent('r.id', 'CAST($3 AS INTEGER)', 'CAST($4 AS INTEGER)')}
    ${d.lock('r')} ON CONFLICT DO NOTHING RETURNING seq`,
);

export const eventStatements = [insertEvents, insertHeld];

/** Appends to the events of runs that are held, where that takes one row. Gives those that were written. */
export function* appendHeld(
  group: readonly AppendedEvents[],
  context: StateContext,
): Plan<ReadonlySet<AppendedEvents>> {
  const written = new Set<AppendedEvents>();
  for (const each of group) {
    const { runId, attempt } = each.run;
    const home = isSnapshotId(runId) ? runHome(runId, context) : undefined;
    if (home === undefined) continue;
    const id = uuidBytes(runId);
    const [row, ...more] = packed(each.events, home, id, context.cipher);
    if (row === undefined || more.length > 0) continue;
    if ((yield* first(insertHeld, id, attempt, ...row)) !== undefined) written.add(each);
  }
  return written;
}

/** Appends to the events of runs under their current attempts. Gives an error for each run that is no longer held. */
export function* appendAll(
  all: readonly AppendedEvents[],
  context: EventContext,
): Plan<ReadonlyMap<AppendedEvents, WaymarkError>> {
  const lost = new Map<AppendedEvents, WaymarkError>();
  for (const each of all) {
    const { runId, attempt } = each.run;
    const id = isSnapshotId(runId) ? uuidBytes(runId) : undefined;
    const row = id && (yield* first(selectOpen, id, attempt));
    if (row === undefined) lost.set(each, notHeld(runId, attempt));
    else yield* appendEvents(row, each.events, context);
  }
  return lost;
}

/** Events after a cursor: see {@link EventSupport.read}. */
export function* readEvents(
  scope: Scope,
  runId: string,
  { after, limit }: { readonly after?: EventCursor; readonly limit: number },
  cipher: Cipher,
): Plan<Awaited<ReturnType<EventSupport['read']>>> {
  if (!isSnapshotId(runId)) return undefined;
  const id = uuidBytes(runId);
  const kept = yield* first(selectKept, id, ...scopeKey(scope));
  if (kept === undefined) return undefined;
  const home = homeOf(kept);
  const { attempt, seq } = after ?? { attempt: 0, seq: -1 };
  // A row holds at least one event, so this many rows are enough to know whether there are more.
  const rows = yield* all(selectEvents, id, attempt, seq, limit + 1);
  const events = rows
    .flatMap((row) =>
      unpackEvents(row.attempt, cipher.decrypt(row.body, journalPlace(home, id, row))),
    )
    .filter((event) => isAfter(event, after));
  return { events: events.slice(0, limit), ended: kept.ended === 1 && events.length <= limit };
}

const deleteOld = statement(
  'events_forget',
  (d) => `
    DELETE FROM @journal WHERE run IN (
      SELECT run FROM @journal WHERE ended_at IS NOT NULL AND ended_at <= ${d.now} - CAST($1 AS BIGINT))`,
);

/** Forgets the events of runs that ended this many milliseconds ago. */
export function* forgetEvents(ttl: number): Plan<void> {
  yield* run(deleteOld, ttl);
}
