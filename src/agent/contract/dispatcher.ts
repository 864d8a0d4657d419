import { WaymarkError } from '../../core/error.ts';
import type { RetryResult } from '../../protocol/requests.ts';
import type { DeadRun } from '../../protocol/run.ts';
import type { QueueHandoff, RunRef, Scope } from '../../store/contract/store.ts';

/** Priority and delay of a queued run. */
export interface QueueOptions {
  /** Priority, an integer; higher ones start first. @default 0 */
  readonly priority?: number;
  /** The earliest start: a date, or milliseconds from now. @default at once */
  readonly startAfter?: Date | number;
}

/** A detached run that a worker should execute. */
export interface DispatchedRun extends RunRef {
  /** The agent and the owner. */
  readonly scope: Scope;
  /** The session. */
  readonly sessionId: string;
  /** The version of the agent that accepted it. */
  readonly version?: string;
  /** Priority and start time, if the caller gave them. */
  readonly queue?: QueueOptions;
}

/** Takes runs that are detached from the start. Without a dispatcher they stay in the process that accepted them. */
export interface Dispatcher {
  /** Resolves when one more run may be accepted; RESOURCE_EXHAUSTED with `details.retryAfter` (seconds) when there are too many. */
  admit(): Promise<void>;
  /** How the run is handed over to the queue when it is detached. */
  handOver(run: DispatchedRun): QueueHandoff;
  /** The runs of a scope that were given up, oldest first, where the engine keeps them. @default those that the store keeps */
  deadRuns?(scope: Scope): Promise<readonly DeadRun[]>;
  /** Starts one of them again as a new run; NOT_FOUND for one that is not among the dead runs of the scope. */
  retry?(scope: Scope, runId: string): Promise<RetryResult>;
}

export function noDeadRun(runId: string): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `No run "${runId.slice(0, 64)}" among the dead ones: it was never given up, or has been retried already.`,
  );
}
