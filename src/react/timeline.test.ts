import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toTimeline } from './timeline.ts';

type TimelineShot = Parameters<typeof toTimeline>[0][number];

function shot(
  index: number,
  parent: number | undefined,
  { orphaned = false, status = 'succeeded' as TimelineShot['status'] } = {},
): TimelineShot {
  return {
    snapshotId: `s${index}`,
    index,
    orphaned,
    status,
    ...(parent !== undefined && { parentId: `s${parent}` }),
  };
}

function lanes(shots: readonly TimelineShot[]): Record<string, number> {
  return Object.fromEntries(
    toTimeline(shots).map(({ snapshot, lane }) => [snapshot.snapshotId, lane]),
  );
}

test('a conversation without branches is one line', () => {
  expect(lanes([shot(0, undefined), shot(1, 0), shot(2, 1)])).toEqual({ s0: 0, s1: 0, s2: 0 });
});

test('the active way keeps its column, what was left stands beside it', () => {
  const shots = [
    shot(0, undefined),
    shot(1, 0, { orphaned: true }),
    shot(2, 1, { orphaned: true }),
    shot(3, 0),
  ];
  expect(lanes(shots)).toEqual({ s0: 0, s1: 1, s2: 1, s3: 0 });
  expect(toTimeline(shots)[0]?.children).toEqual(['s1', 's3']);
});

test('a failed turn is a stub beside the line that continues', () => {
  const shots = [
    shot(0, undefined),
    shot(1, 0, { status: 'failed' }),
    shot(2, 0),
    shot(3, 2, { status: 'pending' }),
  ];
  expect(lanes(shots)).toEqual({ s0: 0, s1: 1, s2: 0, s3: 0 });
});

test('branches that do not overlap share a column', () => {
  const orphaned = true;
  const shots = [
    shot(0, undefined),
    shot(1, 0, { orphaned }),
    shot(2, 0),
    shot(3, 2),
    shot(4, 3, { orphaned }),
    shot(5, 3),
  ];
  expect(lanes(shots)).toEqual({ s0: 0, s1: 1, s2: 0, s3: 0, s4: 1, s5: 0 });
});

test('no two lines share a column where they overlap, and the head is in the first', () => {
  const tree = fc
    .array(fc.nat(), { minLength: 1, maxLength: 40 })
    .chain((parents) => fc.tuple(fc.constant(parents), fc.nat(parents.length - 1)));
  fc.assert(
    fc.property(tree, ([parents, head]) => {
      const parentOf = parents.map((parent, at) => (at === 0 ? undefined : parent % at));
      const active = new Set<number>();
      for (let at: number | undefined = head; at !== undefined; at = parentOf[at]) active.add(at);
      const shots = parentOf.map((parent, at) => shot(at, parent, { orphaned: !active.has(at) }));
      const nodes = toTimeline(shots);
      const laneOf = (at: number): number => nodes[at]?.lane ?? -1;

      for (const at of active) expect(laneOf(at)).toBe(0);
      // An edge runs down the column of its child, from the row after its parent: nothing else may stand there.
      for (const [at, parent] of parentOf.entries()) {
        if (parent === undefined) continue;
        for (let row = parent + 1; row < at; row++) expect(laneOf(row)).not.toBe(laneOf(at));
      }
    }),
  );
});
