import type { JsonObject } from '../../core/json/json.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { PruneReport, RetentionPolicy } from './retention.ts';
import type { Scope } from './scope.ts';

/** A fault that `verify` found. */
export interface Fault {
  /** `unfinished`: a file ends within a line, because a process died while it wrote or because it was cut. */
  readonly kind: 'hash' | 'parent' | 'head' | 'unreachable' | 'run' | 'unfinished';
  readonly sessionId?: string;
  readonly snapshotId?: string;
  readonly message: string;
}

/** One session as one JSON document, with its whole tree. */
export interface SessionExport {
  readonly format: 1 | 2;
  readonly session: SessionInfo;
  /** Messages, custom states and artifacts each stand once; snapshots name them by hash. */
  readonly content: JsonObject;
  readonly snapshots: readonly JsonObject[];
}

/** Keeping a store small, whole and portable. */
export interface MaintenanceSupport {
  /** Never breaks a live branch, a head, or a pending interrupt. Without a scope, over the whole store. */
  prune(policy: RetentionPolicy, scope?: Scope): Promise<PruneReport>;
  /** Erases all sessions of one owner over all agents. */
  eraseOwner(owner: string): Promise<number>;
  /** Walks the store; an empty list means that it is whole. */
  verify(options?: { readonly onProgress?: (done: number) => void }): Promise<readonly Fault[]>;
  exportSession(scope: Scope, sessionId: string): Promise<SessionExport | undefined>;
  /** `ALREADY_EXISTS` when the id is taken; `sessionId` gives it another. Hashes are checked (`DATA_LOSS`). */
  importSession(
    scope: Scope,
    document: SessionExport,
    options?: { readonly sessionId?: string },
  ): Promise<SessionInfo>;
}
