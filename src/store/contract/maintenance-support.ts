import type { SessionInfo } from '../../protocol/session.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { Scope } from './snapshot-store.ts';

/** A fault that `verify` found. */
export interface Fault {
  /** `unfinished`: a file ends within a line, because a process died while it wrote or because it was cut. */
  readonly kind: 'hash' | 'parent' | 'head' | 'unreachable' | 'run' | 'unfinished';
  /** The session, if it is known. */
  readonly sessionId?: string;
  /** The snapshot, if it is known. */
  readonly snapshotId?: string;
  /** A description of the fault. */
  readonly message: string;
}

/** How far maintenance is. */
export interface MaintenanceProgress {
  /** About how many items there are in all, where the store knows it at the start. */
  readonly total?: number;
  /** A position of `verify`, which continues from it when it is passed to the next call. */
  readonly cursor?: string;
}

/**
 * Options of maintenance. It works in steps, between which turns run. When a task is stopped, what it did so far stays done, and
 * doing it again continues. A store whose maintenance takes only a moment may ignore them.
 */
export interface MaintenanceOptions {
  /** Called after each step with the number of sessions, or of other items, that are done. */
  readonly onProgress?: (done: number, progress: MaintenanceProgress) => void;
  /** Stops after the current step. */
  readonly signal?: AbortSignal;
}

/** Options of `verify`. */
export interface VerifyOptions extends MaintenanceOptions {
  /**
   * Continues a `verify` that was stopped, from the last `cursor` that it reported. Faults before it are not reported again. The
   * database's own check is repeated only if the other call was stopped before it had reported what the check found.
   */
  readonly cursor?: string;
  /** Called for each fault as soon as it is found, so that a `verify` that is stopped does not lose it. */
  readonly onFault?: (fault: Fault) => void;
}

/** Keeping a store small, whole and portable. */
export interface MaintenanceSupport {
  /** Never breaks a live branch, a head, or a pending interrupt. Without a scope, over the whole store. */
  prune(policy: RetentionPolicy, scope?: Scope, options?: MaintenanceOptions): Promise<PruneReport>;
  /** Deletes all sessions of one owner, of all agents. Resolves to their number. */
  eraseOwner(owner: string, options?: MaintenanceOptions): Promise<number>;
  /** Walks the store; an empty list means that it is whole. */
  verify(options?: VerifyOptions): Promise<readonly Fault[]>;
  /**
   * The session with its whole tree; `undefined` for an unknown id. `RESOURCE_EXHAUSTED` when its files have more than 16 MiB. A store
   * gives and takes documents without files: `checkedStore` adds them.
   */
  exportSession(scope: Scope, sessionId: string): Promise<SessionExport | undefined>;
  /** `ALREADY_EXISTS` when the id is taken; `sessionId` gives it another. Hashes are checked (`DATA_LOSS`). */
  importSession(
    scope: Scope,
    document: SessionExport,
    options?: { readonly sessionId?: string },
  ): Promise<SessionInfo>;
}

/** The snapshots to keep. A snapshot is removed if `olderThan` or `keepLast` says so and no other option keeps it. */
export interface RetentionPolicy {
  /** Keeps the newest n snapshots of each session. */
  readonly keepLast?: number;
  /** Removes snapshots whose last write is older than this number of milliseconds. */
  readonly olderThan?: number;
  /** @default true */
  readonly keepLabelled?: boolean;
  /** Ids of sessions that are never pruned. */
  readonly keepSessions?: readonly string[];
  /** Also deletes sessions whose only remaining snapshot is an old head. @default false */
  readonly dropSessions?: boolean;
}

/** The numbers of deleted items. */
export interface PruneReport {
  /** Number of snapshots. */
  readonly snapshots: number;
  /** Number of sessions. */
  readonly sessions: number;
}
