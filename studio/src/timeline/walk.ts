import type { Graph, GraphRow } from './graph.ts';

/** A step through the timeline: to the next or previous row, or to the branch on the left or right. */
export type Step = 'down' | 'up' | 'left' | 'right' | 'first' | 'last';

/** Where a step leads; `undefined` when there is nothing in that direction. */
export function walk(graph: Graph, from: string | undefined, step: Step): GraphRow | undefined {
  const { rows, rowOf } = graph;
  const here =
    rows[rowOf.get(from ?? '') ?? -1] ?? rows.find(({ isHead }) => isHead) ?? rows.at(-1);
  if (!here) return undefined;
  switch (step) {
    case 'down':
      return rows[here.row + 1];
    case 'up':
      return rows[here.row - 1];
    case 'first':
      return rows[0];
    case 'last':
      return rows.at(-1);
    case 'left':
      return beside(rows, here, (lane) => here.lane - lane);
    case 'right':
      return beside(rows, here, (lane) => lane - here.lane);
  }
}

// The nearest branch in a direction, and on it the turn that is nearest to this one.
function beside(
  rows: readonly GraphRow[],
  here: GraphRow,
  distance: (lane: number) => number,
): GraphRow | undefined {
  let best: { readonly row: GraphRow; readonly score: number } | undefined;
  for (const row of rows) {
    const lanes = distance(row.lane);
    if (lanes <= 0) continue;
    const turns = Math.abs(row.snapshot.turnIndex - here.snapshot.turnIndex);
    const score = turns * 1_000 + lanes * 10 + Math.min(9, Math.abs(row.row - here.row) / 100);
    if (!best || score < best.score) best = { row, score };
  }
  return best?.row;
}
