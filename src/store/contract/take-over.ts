import type { SessionState } from '../../session/session-state.ts';
import type { Claim } from './claim.ts';
import type { RunRecord } from './run.ts';
import type { StateBase } from './state.ts';
import type { RunUsage } from './usage.ts';

/** How many suspects a takeover may take: runs whose workers have died since their last progress. */
export interface SuspectLimit {
  /** At most so many suspects. */
  readonly limit: number;
  /** Only suspects that have lost at most so many workers, the last one included. */
  readonly maxCrashes: number;
  /** Runs that have lost so many are no suspects any more: they are taken to be given up. */
  readonly attempts: number;
}

/** A run taken over: the new attempt, and the state of its last checkpoint, or of its parent when it had none. */
export interface TakenRun {
  /** The run as it is stored. */
  readonly run: RunRecord;
  /** `claim.parent` is what the run was first claimed from, never `answered`: its own snapshots do not count. */
  readonly claim: Claim;
  /** The last committed snapshot that the run continues from: its own last one, else that of `claim.parent`. */
  readonly base?: StateBase;
  /** The state of the last checkpoint; absent when there is none and the run starts from `base`. */
  readonly checkpoint?: SessionState;
  /** What the run had used at its last checkpoint. */
  readonly used?: RunUsage;
}
