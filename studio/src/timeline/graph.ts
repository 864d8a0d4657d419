import type { Snapshot } from '../../../src/client/index.ts';
import { toTimeline } from '../../../src/react/index.ts';
import { type MarkKind, markOf } from '../ui/mark.tsx';

/** A snapshot's row in the picture. */
export interface GraphRow {
  readonly snapshot: Snapshot;
  readonly row: number;
  readonly lane: number;
  readonly mark: MarkKind;
  readonly isHead: boolean;
  /** On the way from the root to the head. */
  readonly isActive: boolean;
}

/** A line from a snapshot to one that goes on from it. */
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
  const rows = nodes.map(({ snapshot, active, lane }, row): GraphRow => {
    const isHead = snapshot.snapshotId === headId;
    return { snapshot, row, lane, mark: markOf(snapshot, isHead), isHead, isActive: active };
  });
  const rowOf = new Map(rows.map(({ snapshot, row }) => [snapshot.snapshotId, row]));
  const edges: GraphEdge[] = [];
  let lanes = 1;
  for (const { snapshot, row, lane, isActive } of rows) {
    lanes = Math.max(lanes, lane + 1);
    const parent = rows[rowOf.get(snapshot.parentId ?? '') ?? -1];
    if (!parent) continue;
    edges.push({
      id: snapshot.snapshotId,
      fromRow: parent.row,
      fromLane: parent.lane,
      toRow: row,
      toLane: lane,
      isActive,
    });
  }
  return { rows, edges, lanes, rowOf };
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

/** How many ways the session has been taken: the snapshots from which nothing goes on. */
export function countBranches({ rows, edges }: Graph): number {
  const parents = new Set(edges.map(({ fromRow }) => fromRow));
  return rows.filter(({ row }) => !parents.has(row)).length;
}
