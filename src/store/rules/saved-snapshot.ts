import { invalid } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { checkScope, checkSessionId, checkSnapshotId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { CommitWrite, Scope } from '../contract/store.ts';

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

/** The fields of a written snapshot that are not part of its write. */
type Written = Pick<
  Snapshot,
  'sessionId' | 'parentId' | 'index' | 'createdAt' | 'updatedAt' | 'orphaned'
>;

/** The snapshot that a write makes, without its state. */
export function writtenSnapshot(write: CommitWrite, written: Written): Snapshot {
  const { snapshotId, turnIndex, event, status, finishReason, error, edit, usage } = write;
  const { stateHash } = write;
  const turn = { snapshotId, turnIndex, event, status, finishReason, error, edit, usage };
  return defined({ ...turn, stateHash, ...written });
}
