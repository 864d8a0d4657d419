import type { Cipher } from '../content/cipher.ts';
import { discardAll, type Pointers, trash, trashKind } from '../content/gc-queue.ts';
import { partNamesIn } from '../content/manifest.ts';
import { maxStoredNode, namesInNode } from '../content/nodes.ts';
import { documentPlace } from '../content/places.ts';
import { releaseUploads } from '../content/uploads.ts';
import { selectByHash } from '../content/write-documents.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import { messageRowId } from '../history/segments.ts';
import { keepCutOfFork } from './cuts.ts';
import { gapsOf, type Reachability, reachabilityHeld } from './gc-reachability.ts';

const collectAlone = statement('collect_alone', (d) => d.collectAlone);
const ownBlobs = statement('collect_own', (d) => d.ownBlobs);
const shareBlobs = statement('collect_share', (d) => d.shareBlobs);
const selectTrash = statement<{ kind: number; row_id: number; size: number | null }>(
  'collect_next',
  (d) => `
    SELECT t.kind, t.row_id, (SELECT octet_length(b.body) + COALESCE(octet_length(b.bytes), 0) FROM @blobs b
      WHERE b.row_id = t.row_id AND t.kind = ${trashKind.blob}) AS size
    FROM @trash t WHERE t.kind > ${trashKind.upload} AND t.kind <> $1
    ORDER BY t.kind DESC, t.row_id DESC LIMIT ${d.atOnce.rows}`,
);
const deleteTrash = statement(
  'collect_done',
  (d) => `DELETE FROM @trash WHERE kind = $1 AND row_id ${d.integers('$2')}`,
);

type AtOnce = Dialect['atOnce'];

/** Statements that take a branch out of the tree. */
const branchStatements = 10;
/** The size of a usual row in bytes. */
const usualSize = 4096;

/** Releases some files of runs that are over. */
export function* releaseSome(): Plan<void> {
  yield* run(collectAlone);
  yield* run(ownBlobs);
  yield* releaseUploads();
}

/** The result of a step: it removed something, there was nothing to do, or it has to wait for the transactions of others. */
type Swept = 'some' | 'nothing' | 'waits';

/**
 * Removes some of what may have become unreachable, on request `without` documents. Everything that is still to be looked at is in a table,
 * so that a crash forgets nothing.
 */
export function* sweepSome(
  cipher: Cipher,
  { atOnce }: Dialect,
  without?: 'documents',
): Plan<Swept> {
  yield* run(collectAlone);
  const skipped = without === undefined ? trashKind.upload : trashKind.blob;
  const found = yield* all(selectTrash, skipped);
  const [next] = found;
  if (next === undefined) return 'nothing';
  const items = found.filter((item) => item.kind === next.kind);
  const some = items.slice(0, atOnce.sessions).map((item) => item.row_id);
  if (next.kind === trashKind.blob) {
    return (yield* collectBlobs(documentsOf(items, atOnce), cipher)) ? 'some' : 'waits';
  }
  // Versions that do not know the lock above hold the documents while they collect.
  yield* run(shareBlobs);
  if (next.kind === trashKind.session) yield* collectSessions(some, atOnce);
  else yield* collectBranches(some, atOnce);
  return 'some';
}

/** As many documents as may go at once: a large one takes as long as several. */
function documentsOf(
  items: readonly { readonly row_id: number; readonly size: number | null }[],
  { rows }: AtOnce,
): readonly number[] {
  let left = rows;
  const taken: number[] = [];
  for (const { row_id: rowId, size } of items) {
    if (left <= 0) break;
    left -= 1 + Math.floor((size ?? 0) / usualSize);
    taken.push(rowId);
  }
  return taken;
}

function* done(kind: number, rows: readonly number[]): Plan<void> {
  if (rows.length > 0) yield* run(deleteTrash, kind, JSON.stringify(rows));
}

// Sessions ---------------------------------------------------------------------------------------

const deleteSnapshots = statement<Pointers>(
  'collect_snapshots',
  (d) => `
    DELETE FROM @snapshots WHERE row_id IN
      (SELECT s.row_id FROM ${d.snapshotsOf('$1')} LIMIT ${d.atOnce.rows})
    RETURNING branch, custom, artifacts`,
);

/** The snapshots of sessions that have been erased. */
function* collectSessions(sessions: readonly number[], { rows }: AtOnce): Plan<void> {
  const gone = yield* all(deleteSnapshots, JSON.stringify(sessions));
  yield* discardAll(gone);
  if (gone.length < rows) yield* done(trashKind.session, sessions);
}

// Branches ---------------------------------------------------------------------------------------

const deleteMessages = statement<{ id: number }>(
  'collect_messages',
  (d) => `
    DELETE FROM @messages WHERE id IN (SELECT m.id FROM ${d.messageRanges('$1')} LIMIT ${d.atOnce.rows})
    RETURNING id`,
);
const deleteView = statement(
  'collect_view',
  'DELETE FROM @views WHERE branch = $1 AND row_id = $2',
);
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
const deleteAlone = statement<{ row_id: number }>(
  'collect_branches',
  (d) => `
    DELETE FROM @branches AS b WHERE b.row_id ${d.integers('$1')} AND b.parent IS NULL
    AND NOT EXISTS (SELECT 1 FROM @branches c WHERE c.parent = b.row_id) RETURNING row_id`,
);

/** The rows of some branches that no state holds, and branches themselves when nothing holds to them. */
function* collectBranches(branches: readonly number[], { rows, statements }: AtOnce): Plan<void> {
  const { needs, left } = yield* reachabilityHeld(branches);
  const seen = new Set([...left, ...needs.map((need) => need.row_id)]);
  // A branch that is gone needs none of its rows.
  const missing = branches.filter((branch) => !seen.has(branch));
  const gaps = [
    ...needs.flatMap(gapsOf),
    ...missing.map((branch) => [messageRowId(branch, 0), messageRowId(branch + 1, 0)]),
  ];
  const removed = yield* all(deleteMessages, JSON.stringify(gaps));
  if (removed.length >= rows) return;
  const loose = needs.filter((need) => !need.isHeld && need.unusedViews.length === 0);
  const gone = yield* dropAlone(loose);
  const rest = needs.filter((need) => !gone.has(need.row_id));
  // Children before their parents, which are older.
  const others = rest.filter((need) => !isInPlace(need)).toSorted((a, b) => b.row_id - a.row_id);
  // A change of the tree takes several statements for each branch, and may have other branches looked at again.
  const now = others.slice(0, Math.ceil(statements / branchStatements));
  const later = new Set([...left, ...others.slice(now.length).map((need) => need.row_id)]);
  const finished = branches.filter((branch) => !later.has(branch));
  yield* done(trashKind.branch, finished);
  for (const need of now) yield* rearrange(need);
}

/** Whether nothing but rows of the branch had to go. */
function isInPlace({ isHeld, needsParent, parent, fork, unusedViews }: Reachability): boolean {
  const staysOnParent = needsParent || parent === null || fork === null;
  return isHeld && staysOnParent && unusedViews.length === 0;
}

/** Removes branches that have neither a parent nor children. */
function* dropAlone(needs: readonly Reachability[]): Plan<ReadonlySet<number>> {
  if (needs.length === 0) return new Set();
  const list = JSON.stringify(needs.map((need) => need.row_id));
  return new Set((yield* all(deleteAlone, list)).map((row) => row.row_id));
}

/** Takes views, the link to the parent or the branch out of the tree, if nothing needs them. */
function* rearrange(need: Reachability): Plan<void> {
  const { isHeld, needsParent } = need;
  for (const view of need.unusedViews) yield* dropView(need.row_id, view);
  if (!needsParent || !isHeld) yield* keepCutOfFork(need);
  if (!needsParent) yield* leaveParent(need);
  if (!isHeld) yield* dropBranch(need);
}

function* dropView(of: number, view: number): Plan<void> {
  const held = (yield* all(deleteViewRefs, view)).map((ref) => ref.branch);
  yield* run(deleteView, of, view);
  yield* trash('branch', held);
}

/** Nothing on the branch is read together with the parent's rows any more. */
function* leaveParent({ row_id: branch, parent, fork }: Reachability): Plan<void> {
  if (parent === null || fork === null) return;
  yield* run(cutParent, branch);
  yield* trash('branch', [parent]);
}

/** Takes an empty branch out of the tree: its children hang on its parent from now on. */
function* dropBranch(need: Reachability): Plan<void> {
  const { row_id: branch, parent, fork, fork_view, fork_snapshot } = need;
  for (const child of yield* all(selectChildren, branch)) {
    const isShared = child.fork !== null;
    const through = isShared ? [fork, fork_view] : [null, null];
    yield* run(moveChild, child.row_id, parent, ...through, fork_snapshot);
  }
  yield* run(deleteBranch, branch);
  yield* trash('branch', [parent]);
}

// Blobs ------------------------------------------------------------------------------------------

interface DeletedBlob {
  readonly row_id: number;
  readonly prev: number | null;
  readonly body: SqlValue;
  /** If they may be those of a node. */
  readonly bytes: Uint8Array | null;
}

const deleteBlobs = statement<DeletedBlob>(
  'collect_blobs',
  (d) => `
    DELETE FROM @blobs AS b WHERE b.row_id ${d.integers('$1')}
    AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = b.row_id)
    AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = b.row_id)
    AND NOT EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = b.row_id)
    AND NOT EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = b.row_id)
    RETURNING row_id, prev, body,
      CASE WHEN octet_length(bytes) <= ${maxStoredNode} THEN bytes END AS bytes`,
);
const deleteParts = statement(
  'collect_part_rows',
  (d) => `
    DELETE FROM @blob_parts WHERE part ${d.integers('$1')} AND +list ${d.integers('$2')}`,
);

// Whether the last snapshot that names them is just being removed is not known yet. Documents that others name are removed by collections
// only, of which one works at a time.
const selectUndecided = statement<{ row_id: number }>(
  'collect_undecided',
  (d) => `
    SELECT b.row_id FROM @blobs b WHERE b.row_id ${d.integers('$1')}
      AND NOT EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = b.row_id)
      AND NOT EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = b.row_id)
    EXCEPT ${d.namedDocuments('$1')}`,
);

/**
 * Documents that no snapshot, no patch and no list names; then perhaps what they named. Gives whether any could be judged: one whose last
 * snapshot is just being removed is neither needed nor free.
 */
function* collectBlobs(rows: readonly number[], cipher: Cipher): Plan<boolean> {
  yield* run(ownBlobs);
  const gone = yield* all(deleteBlobs, JSON.stringify(rows));
  const judged = yield* judgedOf(rows, new Set(gone.map((blob) => blob.row_id)));
  yield* done(trashKind.blob, judged);
  const names = gone.flatMap(({ body, bytes }) => [
    ...partNamesIn(cipher.decrypt(body, documentPlace), cipher),
    ...(bytes === null ? [] : namesInNode(bytes, cipher)),
  ]);
  const found = names.length === 0 ? [] : yield* all(selectByHash, JSON.stringify(names));
  const parts = found.map((part) => part.row_id);
  if (parts.length > 0) {
    const lists = gone.map((blob) => blob.row_id);
    yield* run(deleteParts, JSON.stringify(parts), JSON.stringify(lists));
  }
  yield* trash('blob', [...parts, ...gone.map((blob) => blob.prev)]);
  return judged.length > 0;
}

/** The documents that are gone, or held by something that stays. */
function* judgedOf(rows: readonly number[], gone: ReadonlySet<number>): Plan<readonly number[]> {
  const rest = rows.filter((row) => !gone.has(row));
  if (rest.length === 0) return rows;
  const undecided = yield* all(selectUndecided, JSON.stringify(rest));
  const open = new Set(undecided.map((row) => row.row_id));
  return rows.filter((row) => !open.has(row));
}
