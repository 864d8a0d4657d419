import type { Snapshot } from '../../../src/client/index.ts';
import { toTimeline } from '../../../src/react/index.ts';
import { type MarkKind, markOf } from '../ui/mark.tsx';

/** A snapshot's row in the picture. */
export interface GraphRow {
  readonly snapshot: Snapshot;
  readonly row: number;
  readonly lane: number;
  /** The farthest lane that anything is drawn in beside this row; its words begin after that. */
  readonly reach: number;
  readonly mark: MarkKind;
  readonly isHead: boolean;
  /** On the way from the root to the head. */
  readonly isActive: boolean;
}

/** A line from a snapshot to its child. */
export interface GraphEdge {
  readonly id: string;
  readonly fromRow: number;
  readonly fromLane: number;
  readonly toRow: number;
  readonly toLane: number;
  readonly isActive: boolean;
}

/** The tree of a session as rows and lines. */
export interface Graph {
  readonly rows: readonly GraphRow[];
  readonly edges: readonly GraphEdge[];
  readonly lanes: number;
  readonly rowOf: ReadonlyMap<string, number>;
  /** The number of branches: snapshots without children. */
  readonly branches: number;
}

/** A turn that runs and is not listed yet. */
export interface RunningTurn {
  readonly snapshotId: string;
  readonly parentId: string | undefined;
}

/** Lays a session out: one row a snapshot, in the order they were made; branches side by side. */
export function toGraph(
  snapshots: readonly Snapshot[],
  headId: string | undefined,
  running?: RunningTurn,
): Graph {
  const nodes = toTimeline(withRunning(snapshots, running));
  const rowOf = new Map(nodes.map(({ snapshot }, row) => [snapshot.snapshotId, row]));
  const edges = nodes.flatMap(({ snapshot, active, lane }, toRow): GraphEdge[] => {
    const fromRow = rowOf.get(snapshot.parentId ?? '');
    const parent = nodes[fromRow ?? -1];
    if (fromRow === undefined || !parent) return [];
    const id = snapshot.snapshotId;
    return [{ id, fromRow, fromLane: parent.lane, toRow, toLane: lane, isActive: active }];
  });
  const reach = reachOf(
    nodes.map(({ lane }) => lane),
    edges,
  );
  const rows = nodes.map(({ snapshot, active, lane }, row): GraphRow => {
    const isHead = snapshot.snapshotId === headId;
    const mark = markOf(snapshot, isHead);
    return { snapshot, row, lane, reach: reach[row] ?? lane, mark, isHead, isActive: active };
  });
  const parents = new Set(edges.map(({ fromRow }) => fromRow));
  return {
    rows,
    edges,
    lanes: nodes.reduce((most, { lane }) => Math.max(most, lane + 1), 1),
    rowOf,
    branches: nodes.length - parents.size,
  };
}

function reachOf(lanes: readonly number[], edges: readonly GraphEdge[]): readonly number[] {
  const reach = [...lanes];
  for (const { fromRow, toRow, toLane } of edges) {
    for (let row = fromRow + 1; row < toRow; row++) {
      if (toLane > (reach[row] ?? 0)) reach[row] = toLane;
    }
  }
  return reach;
}

function withRunning(
  snapshots: readonly Snapshot[],
  running: RunningTurn | undefined,
): readonly Snapshot[] {
  if (!running || snapshots.some(({ snapshotId }) => snapshotId === running.snapshotId))
    return snapshots;
  const { snapshotId, parentId } = running;
  const parent = snapshots.find((each) => each.snapshotId === parentId);
  const last = snapshots.reduce((most, { index }) => Math.max(most, index), -1);
  const pending: Snapshot = {
    snapshotId,
    sessionId: parent?.sessionId ?? '',
    ...(parentId !== undefined && { parentId }),
    index: last + 1,
    turnIndex: (parent?.turnIndex ?? -1) + 1,
    event: 'turnEnd',
    status: 'pending',
    createdAt: '',
    updatedAt: '',
    stateHash: '',
    orphaned: false,
  };
  return [...snapshots, pending];
}
