import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Snapshot } from '../../../src/client/index.ts';
import { toGraph } from './graph.ts';
import { walk } from './walk.ts';

/** A session, as the places of each snapshot's parent tell it; the last one is the head. */
function session(parents: readonly (number | undefined)[], head = parents.length - 1) {
  const active = new Set<number>();
  for (let at: number | undefined = head; at !== undefined; at = parents[at]) active.add(at);
  const turns: number[] = [];
  const snapshots = parents.map((parent, index): Snapshot => {
    const turnIndex = parent === undefined ? 0 : (turns[parent] ?? 0) + 1;
    turns.push(turnIndex);
    return {
      snapshotId: `s${index}`,
      sessionId: 'session',
      ...(parent !== undefined && { parentId: `s${parent}` }),
      index,
      turnIndex,
      event: 'turnEnd',
      status: 'succeeded',
      createdAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
      stateHash: '',
      orphaned: !active.has(index),
    };
  });
  return { snapshots, headId: `s${head}` };
}

const sessions = fc.array(fc.nat(), { minLength: 1, maxLength: 40 }).chain((choices) => {
  const parents = choices.map((choice, at) => (at === 0 ? undefined : choice % at));
  return fc.nat(parents.length - 1).map((head) => session(parents, head));
});

test('a branch stands beside the way that was taken', () => {
  const { snapshots, headId } = session([undefined, 0, 1, 0, 3]);
  const graph = toGraph(snapshots, headId);
  expect(graph.rows.map(({ lane, mark, isActive }) => [lane, mark, isActive])).toEqual([
    [0, 'done', true],
    [1, 'orphaned', false],
    [1, 'orphaned', false],
    [0, 'done', true],
    [0, 'head', true],
  ]);
  expect(graph).toMatchObject({ lanes: 2, branches: 2 });
});

test('a turn that runs is there before it is listed, and only once', () => {
  const { snapshots, headId } = session([undefined, 0]);
  const running = { snapshotId: 's2', parentId: headId };
  const graph = toGraph(snapshots, headId, running);
  expect(graph.rows.at(-1)).toMatchObject({ mark: 'pending', row: 2, lane: 0 });
  expect(graph.rows.at(-1)?.snapshot.turnIndex).toBe(2);
  const listed = [...snapshots, ...session([undefined, 0, 1]).snapshots.slice(2)];
  expect(toGraph(listed, headId, running).rows).toHaveLength(3);
});

test('every snapshot has a row, every parent a line, and words begin behind all lines', () => {
  fc.assert(
    fc.property(sessions, ({ snapshots, headId }) => {
      const { rows, edges, lanes, rowOf } = toGraph(snapshots, headId);
      expect(rows.map(({ row }) => row)).toEqual(snapshots.map((_, at) => at));
      expect(rows.filter(({ isHead }) => isHead)).toHaveLength(1);
      expect(edges).toHaveLength(snapshots.length - 1);
      for (const { fromRow, toRow, toLane, id } of edges) {
        expect(fromRow).toBeLessThan(toRow);
        expect(rowOf.get(id)).toBe(toRow);
        expect(toLane).toBeLessThan(lanes);
        for (let row = fromRow + 1; row <= toRow; row++) {
          expect(rows[row]?.reach).toBeGreaterThanOrEqual(toLane);
        }
      }
    }),
  );
});

test('a walk goes where it says', () => {
  fc.assert(
    fc.property(sessions, fc.nat(), ({ snapshots, headId }, choice) => {
      const graph = toGraph(snapshots, headId);
      const here = graph.rows[choice % graph.rows.length];
      const from = here?.snapshot.snapshotId;
      const [lane = 0, row = 0] = [here?.lane, here?.row];
      expect(walk(graph, from, 'down')?.row).toBe(
        row + 1 < graph.rows.length ? row + 1 : undefined,
      );
      expect(walk(graph, from, 'up')?.row).toBe(row > 0 ? row - 1 : undefined);
      expect(walk(graph, from, 'first')?.row).toBe(0);
      expect(walk(graph, from, 'last')?.row).toBe(graph.rows.length - 1);
      const hasLeft = graph.rows.some((each) => each.lane < lane);
      const hasRight = graph.rows.some((each) => each.lane > lane);
      const left = walk(graph, from, 'left');
      const right = walk(graph, from, 'right');
      expect(left !== undefined).toBe(hasLeft);
      expect(right !== undefined).toBe(hasRight);
      if (left) expect(left.lane).toBeLessThan(lane);
      if (right) expect(right.lane).toBeGreaterThan(lane);
    }),
  );
});

test('who is nowhere starts at the head', () => {
  const { snapshots, headId } = session([undefined, 0, 1], 1);
  const graph = toGraph(snapshots, headId);
  expect(walk(graph, undefined, 'up')?.row).toBe(0);
  expect(walk(graph, 'gone', 'down')?.row).toBe(2);
  expect(walk(toGraph([], undefined), undefined, 'down')).toBeUndefined();
});
