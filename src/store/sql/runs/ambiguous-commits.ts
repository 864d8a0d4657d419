import { isWaymarkError } from '../../../core/error.ts';
import type { Committed, CommitWrite, RunRef } from '../../contract/store.ts';
import { first, type Plan, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { findByRowId, locationOfRow, metadataOf, stateOf } from '../snapshots/locate.ts';
import { uuidBytes } from '../values/bytes.ts';
import { toStatus } from '../values/codes.ts';

const selectWritten = statement<{ row_id: number }>(
  'doubt_written',
  'SELECT row_id FROM @snapshots WHERE id = $1 AND status = $2',
);

/** Commits with an unknown outcome, because the connection broke before the answer. */
export class AmbiguousCommits {
  readonly #open = new Set<string>();

  /** Notes the outcome of a commit that failed. Gives whether it is one that may have been done before. */
  hasDoubt(ref: RunRef, write: CommitWrite, error: unknown): boolean {
    const key = `${ref.runId} ${ref.attempt} ${write.snapshotId}`;
    if (!isWaymarkError(error)) return false;
    if (error.status === 'UNAVAILABLE') this.#open.add(key);
    const isRefused = error.status === 'ABORTED' || error.status === 'ALREADY_EXISTS';
    return isRefused && this.#open.delete(key);
  }
}

/** The result of a commit that was done though its answer was lost; `undefined` when it was not. */
export function* alreadyCommitted(
  write: CommitWrite,
  context: StateContext,
): Plan<Committed | undefined> {
  const id = uuidBytes(write.snapshotId);
  const found = yield* first(selectWritten, id, toStatus(write.status));
  const row = found && (yield* findByRowId(found.row_id));
  if (row === undefined) return undefined;
  const read = yield* stateOf(row, context, { marked: false });
  const snapshot = metadataOf(row, context);
  if (snapshot.stateHash !== write.stateHash) return undefined;
  const ref = locationOfRow(row, read, context.database);
  return { base: { snapshotId: write.snapshotId, state: write.state, ref }, snapshot };
}
