import type { Snapshot } from '../protocol/snapshot.ts';

/** A snapshot's place in the picture of its session. */
export interface TimelineNode<Shot extends TimelineShot = Snapshot> {
  /** The snapshot. */
  readonly snapshot: Shot;
  /** On the way from the root to the head. */
  readonly active: boolean;
  /** The ids of the snapshots that continue from it. */
  readonly children: readonly string[];
  /** The column to draw it in; 0 is the active line, and no two lines share a column where they overlap. */
  readonly lane: number;
}

/** The fields of a snapshot that its place depends on. */
type TimelineShot = Pick<Snapshot, 'snapshotId' | 'parentId' | 'index' | 'orphaned' | 'status'>;

/**
 * The snapshots of a session as a graph, in the order of their index: one row each.
 *
 * @example
 * const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
 * const rows = toTimeline(items);
 */
export function toTimeline<Shot extends TimelineShot>(
  snapshots: readonly Shot[],
): readonly TimelineNode<Shot>[] {
  const rows = [...snapshots].sort((a, b) => a.index - b.index);
  const rowOf = new Map(rows.map(({ snapshotId }, row) => [snapshotId, row]));
  const children = rows.map((): Shot[] => []);
  const parentRow = ({ parentId }: Shot): number | undefined =>
    parentId === undefined ? undefined : rowOf.get(parentId);
  for (const shot of rows) children[parentRow(shot) ?? -1]?.push(shot);

  const lanes = new Map<string, number>();
  // Where each lane is taken up to; a line runs from the row it branches off to its last one.
  const takenUpTo: number[] = [];
  const begin = (first: Shot): void => {
    const line = lineFrom(first, (shot) => children[rowOf.get(shot.snapshotId) ?? -1] ?? []);
    const from = parentRow(first) ?? rowOf.get(first.snapshotId) ?? 0;
    const to = rowOf.get(line.at(-1)?.snapshotId ?? '') ?? from;
    let lane = first.orphaned || isDeadEnd(first) ? 1 : 0;
    while ((takenUpTo[lane] ?? -1) >= from) lane++;
    takenUpTo[lane] = to;
    for (const { snapshotId } of line) lanes.set(snapshotId, lane);
  };
  // Rows come in order of time, so a line's first snapshot comes before the rest of it.
  for (const shot of rows) if (!lanes.has(shot.snapshotId)) begin(shot);

  return rows.map((snapshot, row) => ({
    snapshot,
    active: !snapshot.orphaned,
    children: children[row]?.map(({ snapshotId }) => snapshotId) ?? [],
    lane: lanes.get(snapshot.snapshotId) ?? 0,
  }));
}

/** A snapshot and its direct continuation; branches off the active path, and dead ends, are separate lines. */
function lineFrom<Shot extends TimelineShot>(
  first: Shot,
  childrenOf: (shot: Shot) => readonly Shot[],
): readonly Shot[] {
  const line = [first];
  for (let at: Shot | undefined = first; at; ) {
    at = childrenOf(at).find((next) => next.orphaned === first.orphaned && !isDeadEnd(next));
    if (at) line.push(at);
  }
  return line;
}

// No turn continues from a failed or aborted snapshot.
function isDeadEnd({ status }: TimelineShot): boolean {
  return status === 'failed' || status === 'aborted' || status === 'expired';
}
