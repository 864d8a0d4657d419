import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { Scope } from './scope.ts';

/** Stopping a run from anywhere, and hearing of it at once. */
export interface AbortSupport {
  /**
   * One atomic change. A detached run's pending snapshot becomes `aborted` and its session is free, and so does that of
   * an accepted run that has expired; any other attached or accepted one is asked to stop and stays `pending`.
   * Resolves to the status afterwards, as it reads; `undefined` for an unknown id.
   */
  abortSnapshot(scope: Scope, snapshotId: string): Promise<SnapshotStatus | undefined>;
  /**
   * Calls back soon after anything about this run or snapshot may have changed (stop asked for, status, end), from any
   * process. A hint: read again. Returns the way to stop listening.
   */
  onChange(snapshotId: string, listener: () => void): () => void;
}
