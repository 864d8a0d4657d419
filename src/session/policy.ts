import { checkVariadic } from '../core/options.ts';
import type { SnapshotEvent } from '../protocol/snapshot.ts';
import type { State } from '../protocol/state.ts';

/** A chance to make a snapshot, as a policy sees it. */
interface SnapshotCandidate<Custom = unknown> {
  /** The event. */
  readonly event: SnapshotEvent;
  /** The state that would be kept; made when it is read. */
  readonly state: Omit<State, 'custom'> & { custom?: Custom };
  /** The state of the last snapshot, if there is one; made when it is read. */
  readonly prevState: (Omit<State, 'custom'> & { custom?: Custom }) | undefined;
  /** Whether the two differ. Costs what is new, however long the conversation is. */
  readonly changed: boolean;
  /** The index that the snapshot would have. */
  readonly index: number;
  /** The index of the turn in its session. */
  readonly turnIndex: number;
  /**
   * Counts the chances of the same event, from 0. `turnEnd` and `invocationEnd` count the turns of the session, along the
   * path from its root and over invocations; `toolIterationEnd` counts within its turn.
   */
  readonly eventIndex: number;
}

/** Decides synchronously whether to take a snapshot at an event; a promise is rejected. */
export type SnapshotPolicy<Custom = unknown> = (candidate: SnapshotCandidate<Custom>) => boolean;

/** A snapshot at every event. */
export const always: SnapshotPolicy = () => true;

/** No snapshots. The latest state of a session is still saved. */
export const never: SnapshotPolicy = () => false;

/**
 * Takes a snapshot at these events.
 *
 * @example
 * app.defineAgent({ name: 'support', system: 'Help.', snapshot: on('turnEnd', 'toolIterationEnd') });
 */
export function on(...events: readonly SnapshotEvent[]): SnapshotPolicy {
  checkVariadic(events, 'on');
  return ({ event }) => events.includes(event);
}

/** Takes a snapshot at these events, or at all if you name none, if the state has changed since the last one. */
export function onChange(...events: readonly SnapshotEvent[]): SnapshotPolicy {
  checkVariadic(events, 'onChange');
  return (candidate) =>
    (events.length === 0 || events.includes(candidate.event)) && candidate.changed;
}
