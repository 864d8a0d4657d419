import { isBusy } from '../../rules/errors.ts';
import { type Plan, run, statement } from '../database/query.ts';

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
