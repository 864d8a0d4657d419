import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HistoryPiece } from '../../../session/history.ts';
import {
  fromStored,
  gapsBetween,
  messageRowId,
  otherBranches,
  rewriteOf,
  rowsPerBranch,
  type Segment,
  segmentsOf,
  toStored,
  type View,
  viewOfRewrite,
} from './segments.ts';

/** The ids of a view's messages, in order. */
function idsOf(view: View): number[] {
  return segmentsOf(view).flatMap(([from, to]) =>
    Array.from({ length: to - from }, (_, place) => from + place),
  );
}

function messages(count: number): HistoryPiece & { readonly kind: 'new' } {
  const content = [{ text: 'new' }];
  return {
    kind: 'new',
    messages: Array.from({ length: count }, () => ({ role: 'user', content })),
  };
}

const own: View = { before: [], branch: 3, from: 0, to: 10 };

test('a window that slides over the rows of its branch is one number', () => {
  const rewrite = rewriteOf(own, [{ kind: 'kept', from: 4, to: 10 }, messages(2)], 0);
  const view = viewOfRewrite(rewrite, 3, 10, 2);
  expect(view).toEqual({ before: [], branch: 3, from: 4, to: 12 });
  expect(toStored(view)).toBe('[]');
});

test('an inserted piece is distinguished from what follows', () => {
  const pieces = [{ kind: 'kept', from: 0, to: 2 }, messages(1), { kind: 'kept', from: 5, to: 10 }];
  const rewrite = rewriteOf(own, pieces as HistoryPiece[], 2);
  const view = viewOfRewrite(rewrite, 3, 10, 1);
  const id = (row: number): number => messageRowId(3, row);
  expect(idsOf(view)).toEqual([0, 1, 10, 5, 6, 7, 8, 9].map(id));
  // What is appended next follows.
  expect(idsOf({ ...view, to: view.to + 1 }).at(-1)).toBe(id(11));
});

test('a rewrite on a separate branch keeps rows of the other', () => {
  const rewrite = rewriteOf(own, [{ kind: 'kept', from: 0, to: 4 }, messages(2)], 4);
  const view = viewOfRewrite(rewrite, 7, 0, 2);
  expect(otherBranches(view)).toEqual([3]);
  expect(idsOf(view)).toEqual(
    [0, 1, 2, 3]
      .map((row) => messageRowId(3, row))
      .concat([messageRowId(7, 0), messageRowId(7, 1)]),
  );
});

const segment = fc
  .tuple(fc.integer({ min: 1, max: 2 ** 20 }), fc.nat(1000), fc.integer({ min: 1, max: 1000 }))
  .map(
    ([branch, from, length]): Segment => [
      messageRowId(branch, from),
      messageRowId(branch, from + length),
    ],
  );

test('stored ranges read as they were written', () => {
  fc.assert(
    fc.property(fc.array(segment), fc.integer({ min: 1, max: 2 ** 20 }), (before, branch) => {
      const view: View = { before, branch, from: 0, to: 0 };
      expect(fromStored(toStored(view), branch)).toEqual(before);
    }),
  );
});

test('whatever is kept, moved, dropped and added, the view names the same messages as the history', () => {
  const kept = fc
    .tuple(fc.nat(9), fc.nat(9))
    .map(
      ([a, b]): HistoryPiece => ({ kind: 'kept', from: Math.min(a, b), to: Math.max(a, b) + 1 }),
    );
  const piece = fc.oneof(kept, fc.integer({ min: 1, max: 3 }).map(messages));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.boolean(), (pieces, inPlace) => {
      const [branch, row] = inPlace ? [3, 10] : [9, 0];
      const count = pieces.reduce(
        (sum, each) => sum + (each.kind === 'new' ? each.messages.length : 0),
        0,
      );
      const view = viewOfRewrite(rewriteOf(own, pieces, 0), branch, row, count);
      let next = row;
      const expected = pieces.flatMap((each) =>
        each.kind === 'kept'
          ? Array.from({ length: each.to - each.from }, (_, place) =>
              messageRowId(3, each.from + place),
            )
          : each.messages.map(() => messageRowId(branch, next++)),
      );
      expect(idsOf(view)).toEqual(expected);
    }),
  );
});

test('gaps and ranges together are all rows, each once', () => {
  const range = fc
    .tuple(fc.nat(200), fc.integer({ min: 1, max: 50 }))
    .map(([from, length]) => [from, from + length] as const);
  fc.assert(
    fc.property(fc.array(range), (ranges) => {
      const gaps = gapsBetween(ranges);
      const isIn = (row: number, of: readonly (readonly [number, number])[]): boolean =>
        of.some(([from, to]) => row >= from && row < to);
      for (let row = 0; row < 300; row++) expect(isIn(row, gaps)).toBe(!isIn(row, ranges));
      expect(isIn(rowsPerBranch - 1, gaps)).toBe(true);
    }),
  );
});
