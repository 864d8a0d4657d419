import { invalid } from '../../core/error.ts';
import { checkScope, checkSessionId, checkSnapshotId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Scope } from '../contract/store.ts';

/** Refuses a snapshot that cannot be saved under an id: see {@link SnapshotStore.saveSnapshot}. `known` is the one that is stored. */
export function checkSaved(
  scope: Scope,
  snapshotId: string,
  next: Snapshot,
  known: { readonly sessionId: string; readonly isPending: boolean } | undefined,
): void {
  if (next.snapshotId !== snapshotId) {
    throw invalid(`Snapshot "${snapshotId}" cannot be saved with the id "${next.snapshotId}".`);
  }
  if (known !== undefined && known.sessionId !== next.sessionId) {
    throw invalid(`Snapshot "${snapshotId}" cannot move from one session to another.`);
  }
  if (next.status === 'expired' && known?.isPending !== true) {
    throw invalid('A snapshot only reads "expired"; it cannot be saved as such.');
  }
  if (known !== undefined) return;
  checkScope(scope);
  checkSessionId(next.sessionId);
  checkSnapshotId(next.snapshotId);
}
