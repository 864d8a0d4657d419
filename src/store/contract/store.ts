import type { EffectSupport } from './effect-support.ts';
import type { EventSupport } from './event-support.ts';
import type { FileSupport } from './file-support.ts';
import type { MaintenanceSupport } from './maintenance-support.ts';
import type { MemorySupport } from './memory-support.ts';
import type { AbortSupport, RunSupport } from './run-support.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import type { SpendSupport } from './spend-support.ts';
import type { TimelineSupport } from './timeline-support.ts';

/**
 * A store: {@link SnapshotStore} is the minimum, and every other property is an optional capability. An app looks at them once,
 * when an agent is defined. The interfaces have one file each in this folder; this one exports them all.
 *
 * In every call, an id that is not a string is `INVALID_ARGUMENT`. The store sets all times from its own clock (Postgres: the
 * database's), so that machines whose clocks differ agree on what has expired.
 */
export interface Store extends SnapshotStore {
  /** Shown in metadata and logs: `memory`, `sqlite`, … */
  readonly name: string;
  /** Whether content is encrypted with your key. Studio then writes no recorded calls to disk. */
  readonly encrypted?: boolean;
  /** Absolute paths of its files and folders, which are no part of a workspace that they are in. */
  readonly paths?: readonly string[];
  /** Makes the store usable (opens files, migrates); called before the first use, safe to call again. */
  open?(): Promise<void>;
  /** Claims and background runs. */
  readonly runs?: RunSupport;
  /** Aborts from other processes. */
  readonly abort?: AbortSupport;
  /** Events of runs, to watch them. */
  readonly events?: EventSupport;
  /** Lists of sessions and snapshots, restore and fork. */
  readonly timeline?: TimelineSupport;
  /** Retention, deletion, verification, export and import. */
  readonly maintenance?: MaintenanceSupport;
  /** Tokens and costs by owner. */
  readonly spend?: SpendSupport;
  /** Files that are stored and read in pieces. */
  readonly files?: FileSupport;
  /** Memory across sessions. */
  readonly memory?: MemorySupport;
  /** Effects in other systems that can be undone. */
  readonly effects?: EffectSupport;
}

export type { Lookup } from '../../protocol/ids.ts';
export type { MessageOptions, MessagePage } from '../../protocol/message-page.ts';
export type { RunMode } from '../../protocol/run.ts';
export type * from './effect-support.ts';
export type * from './event-support.ts';
export type * from './file-support.ts';
export type * from './maintenance-support.ts';
export type * from './memory-support.ts';
export type * from './run.ts';
export { handedOverHint, inboxLimits, requestTtl, waitingTtl } from './run.ts';
export {
  type AbortSupport,
  type Committed,
  type CommitWrite,
  isWithinTurn,
  type RunSupport,
} from './run-support.ts';
export { type Scope, type SnapshotStore, savedPendingTtl } from './snapshot-store.ts';
export type * from './spend-support.ts';
export type * from './timeline-support.ts';
