import { all, type Plan, run, statement } from '../database/query.ts';

/** Candidates for garbage collection: branches and blobs that may be unused; deleted sessions; blobs that a run may hold. */
export const trashKind = { upload: -1, branch: 0, blob: 1, session: 2 } as const;

const insertTrash = statement(
  'trash_add',
  'INSERT INTO @trash(kind, row_id) VALUES($1, $2) ON CONFLICT DO NOTHING',
);

/** The branch and the documents that a row names, which is removed or moved. */
export interface Pointers {
  readonly branch: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
}

export const pointerColumns = 'branch, custom, artifacts';

const deleteBare = statement<Pointers>(
  'trash_bare',
  `DELETE FROM @snapshots WHERE row_id = $1 AND id IS NULL RETURNING ${pointerColumns}`,
);

const deleteRow = statement<Pointers>(
  'trash_row',
  `DELETE FROM @snapshots WHERE row_id = $1 RETURNING ${pointerColumns}`,
);

/** Notes the branch and documents of a row in the transaction that removes it, so that nothing is forgotten in a crash. */
export function* discard(
  gone: Pointers | undefined,
  kept: Pointers | undefined = undefined,
): Plan<void> {
  for (const column of ['branch', 'custom', 'artifacts'] as const) {
    const row = gone?.[column] ?? null;
    const kind = column === 'branch' ? trashKind.branch : trashKind.blob;
    if (row !== null && row !== kept?.[column]) yield* run(insertTrash, kind, row);
  }
}

// In order: two that note the same rows in another order would wait for each other.
const insertBranches = statement(
  'trash_branches',
  (d) => `
    INSERT INTO @trash(kind, row_id) SELECT ${trashKind.branch}, row_id FROM @branches
    WHERE row_id ${d.integers('$1')} ORDER BY row_id ON CONFLICT DO NOTHING`,
);
const insertBlobs = statement(
  'trash_blobs',
  (d) => `
    INSERT INTO @trash(kind, row_id) SELECT ${trashKind.blob}, row_id FROM @blobs
    WHERE row_id ${d.integers('$1')} ORDER BY row_id ON CONFLICT DO NOTHING`,
);

const insertSessions = statement(
  'trash_sessions',
  (d) => `
    INSERT INTO @trash(kind, row_id) SELECT ${trashKind.session}, row_id FROM @sessions
    WHERE row_id ${d.integers('$1')} ORDER BY row_id ON CONFLICT DO NOTHING`,
);

/** Notes sessions, a JSON array of their numbers, that are deleted in the same transaction. */
export function* trashSessions(sessions: string): Plan<void> {
  yield* run(insertSessions, sessions);
}

/** Notes documents that may have become unused. */
export function* trashBlobs(rows: readonly number[]): Plan<void> {
  if (rows.length > 0) yield* run(insertBlobs, JSON.stringify(rows));
}

/** As {@link discard}, for many rows at once. */
export function* discardAll(gone: readonly Pointers[]): Plan<void> {
  const isThere = (rowId: number | null): rowId is number => rowId !== null;
  const branches = new Set(gone.map((row) => row.branch).filter(isThere));
  const blobs = new Set(gone.flatMap((row) => [row.custom, row.artifacts]).filter(isThere));
  if (branches.size > 0) yield* run(insertBranches, JSON.stringify([...branches]));
  if (blobs.size > 0) yield* run(insertBlobs, JSON.stringify([...blobs]));
}

/** Removes a checkpoint; a committed snapshot that served as one stays. */
export function* dropCheckpoint(rowId: number | null, kept?: Pointers): Plan<void> {
  if (rowId === null) return;
  const [gone] = yield* all(deleteBare, rowId);
  yield* discard(gone, kept);
}

/** Removes a snapshot. */
export function* dropSnapshot(rowId: number, kept?: Pointers): Plan<void> {
  const [gone] = yield* all(deleteRow, rowId);
  yield* discard(gone, kept);
}
