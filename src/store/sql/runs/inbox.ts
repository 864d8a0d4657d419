import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunRef, Scope, SteeringMessage } from '../../contract/store.ts';
import { decideSteer } from '../../rules/decide-steer.ts';
import { first, type Plan, readUnderLock } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidBytes } from '../values/bytes.ts';
import { scopeKey } from '../values/scope.ts';
import { addMessage, type Held, messagesOf } from './left-inbox.ts';
import { openRun } from './open-run.ts';

const selectRun = readUnderLock<Held & { readonly stopping: number }>(
  'inbox_run',
  (d) => `
    SELECT r.id, r.session, r.stopping, z.owner, z.agent, z.id AS session_id
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3 ${d.lock('z, r')}`,
);

/** Adds a message to the inbox of a run: see {@link RunSupport.steer}. */
export function* steer(
  scope: Scope,
  runId: string,
  message: SteeringMessage,
  { cipher }: StateContext,
): Plan<boolean> {
  if (!isSnapshotId(runId)) return false;
  const held = yield* first(selectRun, uuidBytes(runId), ...scopeKey(scope));
  if (held === undefined || held.stopping === 1) return false;
  const { left, own } = yield* messagesOf(held, cipher);
  if (decideSteer([...left, ...own], message) === 'known') return true;
  yield* addMessage(held, own.length, message, cipher);
  return true;
}

/** The inbox of a run under its current attempt. */
export function* readInbox(
  ref: RunRef,
  { cipher }: StateContext,
): Plan<readonly SteeringMessage[]> {
  return yield* inboxOf(yield* openRun(ref), cipher);
}

/** The inbox of a run, with what earlier runs have left. */
export function* inboxOf(
  held: Held,
  cipher: StateContext['cipher'],
): Plan<readonly SteeringMessage[]> {
  const { left, own } = yield* messagesOf(held, cipher);
  return [...left, ...own];
}
