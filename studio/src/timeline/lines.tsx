import type { ReactNode } from 'react';
import { Mark } from '../ui/mark.tsx';
import type { Graph, GraphEdge } from './graph.ts';

/** The measures of the picture, in pixels. */
export interface Measures {
  readonly rowHeight: number;
  readonly laneWidth: number;
  readonly inset: number;
}

/** The lines and marks of the rows from `first` to before `end`. */
export function GraphLines({
  graph,
  first,
  end,
  width,
  measures,
}: {
  readonly graph: Graph;
  readonly first: number;
  readonly end: number;
  readonly width: number;
  readonly measures: Measures;
}): ReactNode {
  const { rowHeight, laneWidth, inset } = measures;
  const x = (lane: number): number => inset + lane * laneWidth;
  const y = (row: number): number => (row - first + 0.5) * rowHeight;
  const edges = graph.edges.filter(({ fromRow, toRow }) => fromRow < end && toRow >= first);
  return (
    <svg
      className="graph"
      width={width}
      height={(end - first) * rowHeight}
      style={{ transform: `translateY(${first * rowHeight}px)` }}
      aria-hidden="true"
    >
      {edges.map((edge) => (
        <path
          key={edge.id}
          className={edge.isActive ? 'edge active' : 'edge'}
          d={edgePath(edge, x, y, rowHeight)}
        />
      ))}
      {graph.rows.slice(first, end).map(({ snapshot, row, lane, mark, isHead, isActive }) => (
        <Mark
          key={snapshot.snapshotId}
          kind={mark}
          x={x(lane)}
          y={y(row)}
          isHead={isHead}
          isPale={!isActive}
        />
      ))}
    </svg>
  );
}

// A branch leaves its parent in a bend over one row, and then runs straight down.
function edgePath(
  { fromRow, fromLane, toRow, toLane }: GraphEdge,
  x: (lane: number) => number,
  y: (row: number) => number,
  rowHeight: number,
): string {
  const [x0, y0, x1, y1] = [x(fromLane), y(fromRow), x(toLane), y(toRow)];
  if (fromLane === toLane) return `M${x0} ${y0}V${y1}`;
  const bend = y0 + rowHeight;
  return `M${x0} ${y0}C${x0} ${y0 + rowHeight * 0.7} ${x1} ${y0 + rowHeight * 0.3} ${x1} ${bend}V${y1}`;
}
