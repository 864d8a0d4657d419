import { isSnapshotId } from '../../../protocol/ids.ts';
import type { Snapshot } from '../../../protocol/snapshot.ts';
import {
  type QueueHandoff,
  type RequestOutcome,
  type RunEvent,
  type RunRef,
  type RunRequest,
  type RunSignal,
  waitingTtl,
} from '../../contract/store.ts';
import { handedOverAttached, isBusy, notHeld, releasedDetached } from '../../rules/errors.ts';
import { dropCheckpoint } from '../content/gc-queue.ts';
import { homeOf, requestPlace } from '../content/places.ts';
import { first, one, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { countIndex } from '../snapshots/active-path.ts';
import { findRow, metadataOf } from '../snapshots/locate.ts';
import { noHash, stateColumns } from '../snapshots/snapshot-row.ts';
import { uuidBytes } from '../values/bytes.ts';
import { code, toMode } from '../values/codes.ts';
import { isSteered } from '../values/journal.ts';
import { toScope } from '../values/scope.ts';
import { toRequest } from './claim.ts';
import { endRun } from './end-run.ts';
import { appendEvents } from './events.ts';
import { openRun } from './open-run.ts';
import { endRequests } from './requests.ts';

export const updateHeartbeat = statement<{ stopping: number; is_steered: number }>(
  'run_heartbeat',
  (d) => `
    UPDATE @runs SET heartbeat = ${d.now} WHERE id = $1 AND attempt = $2
    RETURNING stopping, ${isSteered('@runs')} AS is_steered`,
);

/** Prolongs a claim. */
export function* heartbeat({ runId, attempt }: RunRef): Plan<RunSignal> {
  if (!isSnapshotId(runId)) return 'lost';
  const row = yield* first(updateHeartbeat, uuidBytes(runId), attempt);
  if (row === undefined) return 'lost';
  if (row.stopping === 1) return 'stop';
  return row.is_steered === 1 ? 'steered' : 'held';
}

const updateDetached = statement(
  'run_detach',
  (d) => `
    UPDATE @runs SET mode = $2, request = $3, own_snapshot = $4, heartbeat = ${d.now},
      ttl = CASE WHEN CAST($5 AS text) IS NULL THEN ttl ELSE ${waitingTtl} END, worker = COALESCE($5, worker)
    WHERE session = $1`,
);
const insertOwn = statement<{ row_id: number }>(
  'run_detach_snapshot',
  (d) => `
    INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, ${stateColumns}, state_hash, created_at, updated_at)
    SELECT r.id, r.session, CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END, z.next_index, r.turn,
      ${code.detach}, ${code.pending}, g.branch, COALESCE(g.branch_length, 0), g.view, COALESCE(g.length, 0),
      g.custom, g.artifacts, COALESCE(g.state_hash, $2), r.created_at, ${d.now}
    FROM @runs r JOIN @sessions z ON z.row_id = r.session LEFT JOIN @snapshots g ON g.row_id = r.base
    WHERE r.session = $1
    RETURNING row_id`,
);
/** Makes a detached run of an attached one: see {@link RunSupport.detach}. */
export function* detach(
  ref: RunRef,
  request: RunRequest,
  away: QueueHandoff | undefined,
  events: readonly RunEvent[] | undefined,
  context: StateContext,
): Plan<Snapshot> {
  const held = yield* openRun(ref);
  if (events !== undefined) yield* appendEvents(held, events, context);
  const own = held.own_snapshot ?? (yield* one(insertOwn, held.session, noHash)).row_id;
  if (held.own_snapshot === null) yield* run(countIndex, held.session);
  const home = homeOf(held);
  const sealed = toRequest(request, requestPlace(home, ref.runId), context.cipher);
  const worker = away?.worker ?? null;
  yield* run(updateDetached, held.session, toMode(request.mode), sealed, own, worker);
  const scope = toScope(home.owner, home.agent);
  const row = yield* findRow(scope, { snapshotId: ref.runId });
  if (row === undefined) throw notHeld(ref.runId, ref.attempt);
  return metadataOf(row, context);
}

// A session that is as its first claim made it: nothing was written to it, said about it or started in it.
const deleteBlank = statement(
  'run_release_session',
  `DELETE FROM @sessions WHERE row_id = $1 AND head IS NULL AND next_index = 0 AND title IS NULL AND metadata IS NULL
     AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.session = $1)
     AND NOT EXISTS (SELECT 1 FROM @sessions c WHERE c.owner = @sessions.owner
       AND c.started_by_agent = @sessions.agent AND c.started_by_session = @sessions.id)`,
);

/** Ends a run without a snapshot: see {@link RunSupport.release}. */
export function* release(
  ref: RunRef,
  events: readonly RunEvent[] | undefined,
  requests: RequestOutcome | undefined,
  context: StateContext,
): Plan<void> {
  const held = yield* openRun(ref);
  if (held.own_snapshot !== null) throw releasedDetached();
  if (events !== undefined) yield* appendEvents(held, events, context);
  yield* endRequests(held.id, requests, context.cipher);
  yield* dropCheckpoint(held.checkpoint);
  const ended = events === undefined || events.length === 0 ? held : { ...held, has_events: 1 };
  const isKept = requests !== undefined || ended.has_events === 1;
  const mayBeBlank = held.head === null && held.next_index === 0 && !isKept;
  // Nothing is left in a session that goes.
  const taken = mayBeBlank && held.has_steps === 1 ? Number.POSITIVE_INFINITY : 0;
  yield* endRun(ended, context, taken);
  if (mayBeBlank) yield* run(deleteBlank, held.session);
}

const updateHandedOver = statement('run_hand_over', 'UPDATE @runs SET ttl = 0 WHERE session = $1');

/** Releases a run. The claim stays expired, even if its old worker still sends heartbeats. */
export function* handOver(ref: RunRef): Plan<void> {
  const held = yield* openRun(ref);
  if (held.mode === code.attached) throw handedOverAttached();
  yield* run(updateHandedOver, held.session);
}

const updateHeartbeats = statement(
  'runs_limit_heartbeats',
  (d) => `UPDATE @runs SET heartbeat = ${d.now} WHERE heartbeat - ${d.now} > ttl`,
);

/**
 * Heartbeats from a clock that is ahead by more than their ttl count from now on. The run of a process with such a clock that
 * died expires after its ttl, and not when the wrong time comes; one that is alive sends a heartbeat before that.
 */
export function* limitHeartbeats(): Plan<void> {
  yield* run(updateHeartbeats);
}

/** Does a write; when a run is in its way, sees to it that the run does not hold its session longer than its ttl. */
export async function limiting<Result>(
  work: () => Promise<Result>,
  limit: () => Promise<void>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isBusy(error)) await limit().catch(() => {});
    throw error;
  }
}
