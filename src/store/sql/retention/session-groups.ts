/** Sessions whose snapshots are read together, about a batch of rows; a long session stands alone. */
export function* groupsOf<Row extends { readonly next_index: number }>(
  rows: readonly Row[],
  batch: number,
): Iterable<readonly Row[]> {
  let group: Row[] = [];
  let size = 0;
  for (const row of rows) {
    // With its head and a checkpoint, which are not listed.
    const own = row.next_index + 2;
    if (size > 0 && size + own > batch) {
      yield group;
      group = [];
      size = 0;
    }
    group.push(row);
    size += own;
  }
  if (group.length > 0) yield group;
}
