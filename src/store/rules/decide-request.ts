import { WaymarkError } from '../../core/error.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import { type RequestMark, requestTtl } from '../contract/store.ts';
import type { Decided } from './decision.ts';
import { type HolderFact, isHolder } from './holder.ts';

/** What a store knows of an idempotency key. */
export interface RequestFact<Run> {
  /** The id of the run. */
  readonly runId: string;
  /** `null`: the session was removed together with its run, which was refused. */
  readonly sessionId: string | null;
  /** The digest of the input. */
  readonly digest: string;
  /** When it was claimed or, once there is a receipt, when the run ended. */
  readonly at: number;
  /** Whether the output is stored. */
  readonly hasReceipt: boolean;
  /** Of the run's snapshot, if it has been written. */
  readonly status: Exclude<SnapshotStatus, 'expired'> | null;
  /** The run, while it is open. */
  readonly run: HolderFact<Run> | null;
}

/** Whether a key passes to a new claim. Gives the expired run that has to give way, if there is one. */
export function decideRequest<Run>(
  request: RequestFact<Run>,
  mark: RequestMark,
  now: number,
): Decided<{ readonly displaced: Run | null }> {
  if (isTaken(request, now)) return requestTaken(request, mark.digest);
  return { displaced: request.run === null ? null : request.run.key };
}

/** Whether a request has a result, or a run that may still have one. */
function isTaken<Run>(request: RequestFact<Run>, now: number): boolean {
  const { sessionId, run, at, hasReceipt, status } = request;
  if (run !== null) return isHolder(run, now);
  if (sessionId === null) return false;
  if (at <= now - requestTtl) return false;
  return hasReceipt || (status !== null && status !== 'pending');
}

function requestTaken<Run>(
  { runId, sessionId, digest }: RequestFact<Run>,
  given: string,
): WaymarkError {
  if (digest === given) {
    return new WaymarkError(
      'ALREADY_EXISTS',
      `This request was accepted before, as run "${runId}".`,
      { details: { request: { runId, sessionId } } },
    );
  }
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `This request id was used before with another input, for run "${runId}". Use a new id for a new request.`,
    { details: { snapshotId: runId } },
  );
}
