/** A column under the name of the first formats and under its name since. */
interface RenamedColumn {
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

const numbered = ['sessions', 'branches', 'views', 'blobs', 'snapshots', 'trash'];

/** The columns that one migration of both SQL stores renames. */
export const renamedColumns: readonly RenamedColumn[] = [
  ...numbered.map((table) => ({ table, from: 'no', to: 'row_id' })),
  { table: 'sessions', from: 'tip', to: 'branch_end' },
  { table: 'snapshots', from: 'upto', to: 'branch_length' },
  { table: 'runs', from: 'own', to: 'own_snapshot' },
  { table: 'view_refs', from: 'of', to: 'view_branch' },
];

/** The name that a column had before the migration. */
export function formerName(table: string, column: string): string {
  const renamed = renamedColumns.find((each) => each.table === table && each.to === column);
  return renamed?.from ?? column;
}
