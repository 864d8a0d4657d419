import type { SteeringMessage } from '../contract/store.ts';
import { leftInbox } from '../rules/decide-steer.ts';
import type { RunRow } from './tables.ts';

/** The inbox of a run, with what earlier runs have left. */
export function inboxOf({ request, session, inbox }: RunRow): readonly SteeringMessage[] {
  const { inbox: left } = session;
  return request.keepInbox !== true || left === undefined ? inbox : [...left, ...inbox];
}

/** Leaves what a run has not taken to the session's next run. Call it before the run ends. */
export function leaveInbox(run: RunRow, taken = 0): void {
  const { session, request, id } = run;
  if (request.keepInbox !== true || run.inbox.length + taken === 0) return;
  const left = leftInbox(inboxOf(run), taken, id);
  if (left.length === 0) delete session.inbox;
  else session.inbox = left;
}
