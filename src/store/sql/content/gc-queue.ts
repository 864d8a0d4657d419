import { type Plan, run, statement } from '../database/query.ts';

/** Candidates for garbage collection: branches and blobs that may be unused; deleted sessions; blobs that a run may hold. */
export const trashKind = { upload: -1, branch: 0, blob: 1, session: 2 } as const;

/** The branch and the documents that a row names, which is removed or moved. */
export interface Pointers {
  readonly branch: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
}

export const pointerColumns = 'branch, custom, artifacts';

/** Notes the pointers of a snapshot that are not kept, in order: two that note the same rows would wait for each other. */
const noteRow = (which: string): string => `
  INSERT INTO @trash(kind, row_id) SELECT t.kind, t.row_id FROM (
    SELECT CAST(${trashKind.branch} AS INTEGER) AS kind, branch AS row_id, CAST($2 AS BIGINT) AS kept FROM @snapshots WHERE ${which}
    UNION SELECT ${trashKind.blob}, custom, CAST($3 AS BIGINT) FROM @snapshots WHERE ${which}
    UNION SELECT ${trashKind.blob}, artifacts, CAST($4 AS BIGINT) FROM @snapshots WHERE ${which}) t
  WHERE t.row_id IS NOT NULL AND t.row_id IS DISTINCT FROM t.kept ORDER BY t.kind, t.row_id ON CONFLICT DO NOTHING`;

const bare = 'row_id = $1 AND id IS NULL';
const noteBare = statement('trash_note_bare', noteRow(bare));
const deleteBare = statement('trash_bare', `DELETE FROM @snapshots WHERE ${bare}`);
const noteAny = statement('trash_note', noteRow('row_id = $1'));
const deleteAny = statement('trash_row', 'DELETE FROM @snapshots WHERE row_id = $1');

export const dropStatements = [noteBare, deleteBare, noteAny, deleteAny];

/** The statement that notes rows of a table, in order: two that note the same rows in another order would wait for each other. */
const insertAll = (kind: keyof typeof trashKind, table: string) =>
  statement(
    `trash_${table}`,
    (d) => `
    INSERT INTO @trash(kind, row_id) SELECT ${trashKind[kind]}, row_id FROM @${table}
    WHERE row_id ${d.integers('$1')} ORDER BY row_id ON CONFLICT DO NOTHING`,
  );
const inserts = {
  branch: insertAll('branch', 'branches'),
  blob: insertAll('blob', 'blobs'),
  session: insertAll('session', 'sessions'),
};

/** Notes branches and documents that may have become unused, or sessions that are deleted in the same transaction. */
export function* trash(kind: keyof typeof inserts, rows: readonly (number | null)[]): Plan<void> {
  const noted = new Set(rows.filter((rowId) => rowId !== null));
  if (noted.size > 0) yield* run(inserts[kind], JSON.stringify([...noted]));
}

/** Notes the branches and documents of rows that were removed. */
export function* discardAll(gone: readonly Pointers[]): Plan<void> {
  const branches = gone.map((row) => row.branch);
  yield* trash('branch', branches);
  const documents = gone.flatMap((row) => [row.custom, row.artifacts]);
  yield* trash('blob', documents);
}

/** Removes a checkpoint; a committed snapshot that served as one stays. */
export function* dropCheckpoint(rowId: number | null, kept?: Pointers): Plan<void> {
  if (rowId === null) return;
  yield* run(noteBare, rowId, ...keptValues(kept));
  yield* run(deleteBare, rowId);
}

export function* dropSnapshot(rowId: number, kept?: Pointers): Plan<void> {
  yield* noteSnapshot(rowId, kept);
  yield* run(deleteAny, rowId);
}

/** Notes the branch and documents of a row in the transaction that moves or removes it, and before that, so that nothing is forgotten in a crash. */
export function* noteSnapshot(rowId: number, kept?: Pointers): Plan<void> {
  yield* run(noteAny, rowId, ...keptValues(kept));
}

function keptValues(kept: Pointers | undefined): readonly (number | null)[] {
  return [kept?.branch ?? null, kept?.custom ?? null, kept?.artifacts ?? null];
}
