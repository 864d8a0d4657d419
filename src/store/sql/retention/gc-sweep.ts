import type { Cipher } from '../content/cipher.ts';
import { partNamesIn } from '../content/manifest.ts';
import { documentPlace } from '../content/places.ts';
import { releaseUploads } from '../content/uploads.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, first, one, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import { gapsBetween, messageRowId } from '../history/segments.ts';
import { keepCutOfFork } from './cuts.ts';
import { discardAll, type Pointers, trashKind } from './gc-queue.ts';
import { type Reachability, reachabilityOf } from './gc-reachability.ts';

const ownBlobs = statement('collect_own', (d) => d.ownBlobs);
const selectTrash = statement<{ kind: number; row_id: number }>(
  'collect_next',
  `SELECT kind, row_id FROM @trash WHERE kind > ${trashKind.upload} ORDER BY kind DESC, row_id DESC LIMIT 1`,
);
const insertTrash = statement(
  'collect_add',
  'INSERT INTO @trash(kind, row_id) VALUES($1, $2) ON CONFLICT DO NOTHING',
);
const deleteTrash = statement('collect_done', 'DELETE FROM @trash WHERE kind = $1 AND row_id = $2');

/** How many rows a batch removes: few enough that turns do not wait for long. */
const batch = 200;
/** Statements for a branch. A turn of its session waits until the batch is done. */
const branchStatements = 7;
/** Of a row, in bytes. */
const usualSize = 4096;

/**
 * Works on what may have become unreachable until about a batch of rows is gone. Gives whether there is more to do.
 * Everything that is still to be looked at is in a table, so that a crash forgets nothing.
 */
export function* sweepSome(cipher: Cipher, { statementCost }: Dialect): Plan<boolean> {
  yield* run(ownBlobs);
  yield* releaseUploads();
  for (let left = batch; left > 0; ) {
    const item = yield* first(selectTrash);
    if (item === undefined) return false;
    const collect = collectors[item.kind];
    const removed = collect === undefined ? 0 : yield* collect(item.row_id, cipher);
    if (removed < batch) yield* run(deleteTrash, item.kind, item.row_id);
    left -= removed + (item.kind === trashKind.branch ? branchStatements * statementCost : 1);
  }
  return true;
}

// Each removes at most a batch and says how many rows that were; a full batch means that it is to be called again.
const collectors: Readonly<Record<number, (rowId: number, cipher: Cipher) => Plan<number>>> = {
  [trashKind.branch]: collectBranch,
  [trashKind.blob]: collectBlob,
  [trashKind.session]: collectSession,
};

// Sessions ---------------------------------------------------------------------------------------

const deleteSnapshots = statement<Pointers>(
  'collect_snapshots',
  `DELETE FROM @snapshots WHERE row_id IN (SELECT row_id FROM @snapshots WHERE session = $1 LIMIT ${batch})
   RETURNING branch, custom, artifacts`,
);

/** The snapshots of a session that has been erased. */
function* collectSession(rowId: number): Plan<number> {
  const gone = yield* all(deleteSnapshots, rowId);
  yield* discardAll(gone);
  return gone.length;
}

// Branches ---------------------------------------------------------------------------------------

const deleteMessages = statement<{ id: number }>(
  'collect_messages',
  `DELETE FROM @messages WHERE id IN
     (SELECT id FROM @messages WHERE id >= $1 AND id < $2 LIMIT CAST($3 AS BIGINT))
   RETURNING id`,
);
const deleteView = statement('collect_view', 'DELETE FROM @views WHERE row_id = $1');
const deleteViewRefs = statement<{ branch: number }>(
  'collect_view_refs',
  'DELETE FROM @view_refs WHERE view = $1 RETURNING branch',
);
const selectChildren = statement<{ row_id: number; fork: number | null }>(
  'collect_children',
  'SELECT row_id, fork FROM @branches WHERE parent = $1',
);
const moveChild = statement(
  'collect_move_child',
  `UPDATE @branches SET parent = $2, fork = $3, fork_view = $4, fork_snapshot = $5 WHERE row_id = $1`,
);
const cutParent = statement(
  'collect_cut_parent',
  'UPDATE @branches SET fork = NULL, fork_view = NULL WHERE row_id = $1',
);
const deleteBranch = statement('collect_branch', 'DELETE FROM @branches WHERE row_id = $1');

/** The rows of a branch that no state holds, and the branch itself when nothing holds to it. */
function* collectBranch(branch: number): Plan<number> {
  const need = yield* reachabilityOf(branch);
  if (need === undefined) return yield* removeRows(branch, []);
  for (const view of need.unusedViews) yield* dropView(view);
  const removed = yield* removeRows(branch, need.ranges);
  if (removed >= batch) return removed;
  const isHeld = need.hasSnapshots || need.ranges.length > 0 || need.usedViews.length > 0;
  if (!need.needsParent || !isHeld) yield* keepCutOfFork(branch, need);
  if (!need.needsParent) yield* leaveParent(branch, need);
  if (!isHeld) yield* dropBranch(branch, need);
  return removed;
}

function* dropView(view: number): Plan<void> {
  const refs = yield* all(deleteViewRefs, view);
  yield* run(deleteView, view);
  for (const { branch } of refs) yield* run(insertTrash, trashKind.branch, branch);
}

function* removeRows(branch: number, ranges: Reachability['ranges']): Plan<number> {
  let removed = 0;
  for (const [from, to] of gapsBetween(ranges)) {
    const ids = [messageRowId(branch, from), messageRowId(branch, to)] as const;
    removed += (yield* all(deleteMessages, ...ids, batch - removed)).length;
    if (removed >= batch) return removed;
  }
  return removed;
}

/** Nothing on the branch is read together with the parent's rows any more. */
function* leaveParent(branch: number, { parent, fork }: Reachability): Plan<void> {
  if (parent === null || fork === null) return;
  yield* run(cutParent, branch);
  yield* run(insertTrash, trashKind.branch, parent);
}

/** Takes an empty branch out of the tree: its children hang on its parent from now on. */
function* dropBranch(
  branch: number,
  { parent, fork, forkView, forkSnapshot }: Reachability,
): Plan<void> {
  for (const child of yield* all(selectChildren, branch)) {
    const isShared = child.fork !== null;
    const through = isShared ? [fork, forkView] : [null, null];
    yield* run(moveChild, child.row_id, parent, ...through, forkSnapshot);
  }
  yield* run(deleteBranch, branch);
  if (parent !== null) yield* run(insertTrash, trashKind.branch, parent);
}

// Blobs ------------------------------------------------------------------------------------------

const selectBlobUses = statement<{ uses: number }>(
  'collect_blob_uses',
  `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM @snapshots WHERE custom = $1 LIMIT 1) a)
     + (SELECT COUNT(*) FROM (SELECT 1 FROM @snapshots WHERE artifacts = $1 LIMIT 1) b)
     + (SELECT COUNT(*) FROM (SELECT 1 FROM @blobs WHERE prev = $1 LIMIT 1) c)
     + (SELECT COUNT(*) FROM (SELECT 1 FROM @blob_parts WHERE part = $1 LIMIT 1) e) AS uses`,
);
const deleteBlob = statement<{ prev: number | null; body: SqlValue; size: number | null }>(
  'collect_blob',
  'DELETE FROM @blobs WHERE row_id = $1 RETURNING prev, body, length(bytes) AS size',
);
const selectParts = statement<{ row_id: number }>(
  'collect_parts',
  (d) => `SELECT b.row_id FROM @blobs b WHERE b.hash IN ${d.bytes('$1')}`,
);
const deletePart = statement(
  'collect_part',
  'DELETE FROM @blob_parts WHERE part = $1 AND list = $2',
);

/** A document that no snapshot, no patch and no list names; then perhaps what it named. */
function* collectBlob(rowId: number, cipher: Cipher): Plan<number> {
  const { uses } = yield* one(selectBlobUses, rowId);
  if (uses > 0) return 0;
  const gone = yield* first(deleteBlob, rowId);
  if (gone === undefined) return 0;
  const names = partNamesIn(cipher.decrypt(gone.body, documentPlace), cipher);
  const parts = names.length === 0 ? [] : yield* all(selectParts, JSON.stringify(names));
  for (const part of parts) {
    yield* run(deletePart, part.row_id, rowId);
    yield* run(insertTrash, trashKind.blob, part.row_id);
  }
  if (gone.prev !== null) yield* run(insertTrash, trashKind.blob, gone.prev);
  // A large one takes as long as several.
  return 1 + Math.floor((gone.size ?? 0) / usualSize);
}
