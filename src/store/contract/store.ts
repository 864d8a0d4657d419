import type { AbortSupport } from './abort-support.ts';
import type { EventSupport } from './event-support.ts';
import type { MaintenanceSupport } from './maintenance-support.ts';
import type { RunSupport } from './run-support.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import type { TimelineSupport } from './timeline-support.ts';

/**
 * A store: {@link SnapshotStore} is the minimum, and every other property is an optional capability. An app looks at them once,
 * when an agent is defined. The interfaces have one file each in this folder; this one lists their names.
 *
 * In every call, an id that is not a string is `INVALID_ARGUMENT`. The store sets all times from its own clock (Postgres: the
 * database's), so that machines whose clocks differ agree on what has expired.
 */
export interface Store extends SnapshotStore {
  /** Shown in metadata and logs: `memory`, `sqlite`, … */
  readonly name: string;
  /** Makes the store usable (opens files, migrates); called before the first use, safe to call again. */
  open?(): Promise<void>;
  readonly runs?: RunSupport;
  readonly abort?: AbortSupport;
  readonly events?: EventSupport;
  readonly timeline?: TimelineSupport;
  readonly maintenance?: MaintenanceSupport;
}

export type { Lookup } from '../../protocol/lookup.ts';
export type { RunMode } from '../../protocol/run.ts';
export type { AbortSupport } from './abort-support.ts';
export type { Claim, ClaimRequest, ParentRef } from './claim.ts';
export { type Committed, type CommitWrite, isWithinTurn } from './commit.ts';
export type { EventCursor, EventSupport, RunEvent } from './event-support.ts';
export { handedOverHint, type QueueHandoff, type Transaction, waitingTtl } from './handoff.ts';
export type { Fault, MaintenanceSupport, SessionExport } from './maintenance-support.ts';
export {
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  requestTtl,
} from './request.ts';
export type { PruneReport, RetentionPolicy } from './retention.ts';
export type { DeadRunRecord, RunCrash, RunRecord, RunRef, RunRequest, RunSignal } from './run.ts';
export type { RunSupport } from './run-support.ts';
export type { Scope } from './scope.ts';
export { type SnapshotStore, savedPendingTtl } from './snapshot-store.ts';
export type { LoadedState, PartialWrite, StateBase, StateWrite } from './state.ts';
export type { SuspectLimit, TakenRun } from './take-over.ts';
export type {
  ExpectHead,
  ListOptions,
  SessionChange,
  SessionFilter,
  TimelineSupport,
} from './timeline-support.ts';
export type { RunUsage, Spent, Totals } from './usage.ts';
