import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunRef } from '../../contract/store.ts';
import { notHeld } from '../../rules/errors.ts';
import { fileHoldMs } from '../../rules/file-pieces.ts';
import { all, first, one, type Plan, run, statement } from '../database/query.ts';
import { freeBytes, uuidBytes } from '../values/bytes.ts';
import type { Cipher } from './cipher.ts';
import { type FileHead, fileDigest, headText, pieceDigest } from './files.ts';
import { trash, trashKind } from './gc-queue.ts';
import { bytesPlace, documentPlace } from './places.ts';
import { selectByHash, writeBlob } from './write-documents.ts';

/*
 * A file that a run has stored is held until a list of artifacts names it: by a row in `blob_parts` whose list is the negative number of the run's
 * session, and for an import the negative number of the time. `trash` names it under a separate kind, so that these rows are found again.
 */

/** Times are above all numbers of sessions. */
const firstTime = 1_000_000_000_000_000;

/** Rows that are released at a time. */
const batch = 1000;

const selectRun = statement<{ list: number }>(
  'upload_run',
  'SELECT -r.session AS list FROM @runs r WHERE r.id = $1 AND r.attempt = $2',
);
const selectTime = statement<{ list: number }>(
  'upload_time',
  (d) => `SELECT -${firstTime} - ${d.now} AS list`,
);
const insertHold = statement(
  'upload_hold',
  'INSERT INTO @blob_parts(part, list) VALUES($1, $2) ON CONFLICT DO NOTHING',
);
const insertCandidate = statement(
  'upload_candidate',
  `INSERT INTO @trash(kind, row_id) VALUES(${trashKind.upload}, $1) ON CONFLICT DO NOTHING`,
);
export const insertParts = statement(
  'upload_parts',
  (d) => `
    INSERT INTO @blob_parts(part, list) SELECT b.row_id, CAST($2 AS BIGINT) FROM @blobs b
    WHERE b.row_id ${d.integers('$1')} ON CONFLICT DO NOTHING`,
);
// A run that has been dead for long is not continued by its worker. An aborted one may still attach what it had reached.
const selectReleased = statement<{ part: number; list: number }>(
  'upload_released',
  (d) => `
    SELECT p.part, p.list FROM @trash t JOIN @blob_parts p ON p.part = t.row_id AND p.list < 0
    WHERE t.kind = ${trashKind.upload} AND CASE WHEN p.list <= -${firstTime}
      THEN -p.list - ${firstTime} <= ${d.now} - ${fileHoldMs}
      ELSE NOT EXISTS (SELECT 1 FROM @runs r
          WHERE r.session = -p.list AND r.heartbeat + r.ttl > ${d.now} - ${fileHoldMs})
        AND NOT EXISTS (SELECT 1 FROM @snapshots s
          WHERE s.session = -p.list AND s.partial IS NOT NULL AND s.updated_at > ${d.now} - ${fileHoldMs}) END
    LIMIT ${batch}`,
);
const deleteHolds = statement(
  'upload_release',
  (d) => `DELETE FROM @blob_parts WHERE list = $1 AND part ${d.integers('$2')}`,
);
const deleteCandidates = statement(
  'upload_released_candidates',
  (d) => `
    DELETE FROM @trash WHERE kind = ${trashKind.upload} AND row_id ${d.integers('$1')}
    AND NOT EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = row_id AND p.list < 0)`,
);

/** The number under which an upload holds what it writes. */
export function* holdOf(ref: RunRef | undefined): Plan<number> {
  if (ref === undefined) return (yield* one(selectTime)).list;
  const { runId, attempt } = ref;
  const row = isSnapshotId(runId) ? yield* first(selectRun, uuidBytes(runId), attempt) : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  return row.list;
}

/** Keeps a row for a run until a list names it. */
export function* hold(part: number, list: number): Plan<void> {
  yield* run(insertHold, part, list);
  yield* run(insertCandidate, part);
}

/** Writes a piece under a run. `marked` is the piece behind its mark. Gives its digest. */
export function* writePiece(
  ref: RunRef | undefined,
  marked: Uint8Array,
  cipher: Cipher,
): Plan<Uint8Array> {
  const list = yield* holdOf(ref);
  const digest = pieceDigest(marked.subarray(1), cipher);
  const body = cipher.encrypt('[]', documentPlace);
  const stored = cipher.encryptBytes(marked, bytesPlace);
  yield* hold(yield* writeBlob(digest, body, stored), list);
  if (stored.buffer !== marked.buffer) freeBytes(stored);
  return digest;
}

/** Writes the row of a file whose pieces have been written. */
export function* finishUpload(
  ref: RunRef | undefined,
  hash: string,
  head: FileHead,
  cipher: Cipher,
): Plan<void> {
  const list = yield* holdOf(ref);
  const body = cipher.encrypt(headText(head), documentPlace);
  const row = yield* writeBlob(fileDigest(hash, cipher), body);
  const names = [...new Set(head.pieces)];
  const pieces = names.length === 0 ? [] : yield* all(selectByHash, JSON.stringify(names));
  // A garbage collection has taken some, because the run had been dead for a while.
  if (pieces.length !== names.length) throw notHeld(ref?.runId ?? '', ref?.attempt ?? 0);
  yield* run(insertParts, JSON.stringify(pieces.map((piece) => piece.row_id)), row);
  yield* hold(row, list);
}

/** Whether there is something that {@link releaseUploads} gives up. */
export function* areUploadsReleased(): Plan<boolean> {
  return (yield* all(selectReleased)).length > 0;
}

/** Gives up what runs have stored that are over. What a list names by now stays. */
export function* releaseUploads(): Plan<void> {
  const released = yield* all(selectReleased);
  if (released.length === 0) return;
  for (const [list, held] of Map.groupBy(released, (each) => each.list)) {
    yield* run(deleteHolds, list, JSON.stringify(held.map(({ part }) => part)));
  }
  const parts = [...new Set(released.map(({ part }) => part))];
  yield* run(deleteCandidates, JSON.stringify(parts));
  yield* trash('blob', parts);
}
