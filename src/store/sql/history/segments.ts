import type { HistoryPiece } from '../../../session/history.ts';

/** Rows of a branch have ids `branch * rowsPerBranch + row`: one integer, so that a range of rows is a range of ids. */
export const rowsPerBranch = 2 ** 22;

export function messageRowId(branch: number, row: number): number {
  return branch * rowsPerBranch + row;
}

/** Message rows `[from, to)`, by id. */
export type Segment = readonly [from: number, to: number];

/** Where the messages of a state lie, in order: ranges of rows, the last of which can be extended. */
export interface View {
  readonly before: readonly Segment[];
  /** The rows of the state's own branch that follow. */
  readonly branch: number;
  readonly from: number;
  readonly to: number;
}

export function segmentsOf({ before, branch, from, to }: View): readonly Segment[] {
  const own: Segment = [messageRowId(branch, from), messageRowId(branch, to)];
  return to > from ? [...before, own] : before;
}

/** A view that was rewritten: ranges already stored and ranges among the new rows. */
export interface Rewrite {
  /** A stored range, or the places of new rows relative to the first of them. */
  readonly parts: readonly (Segment | { readonly newFrom: number; readonly newTo: number })[];
  /** How many of the new rows stand in `parts`; those after them follow. */
  readonly inParts: number;
  /** How many messages at the beginning are the same as before. */
  readonly common: number;
}

/** The rewrite that puts a history together from pieces. `fresh` counts the new messages in them. */
export function rewriteOf(
  view: View | undefined,
  pieces: readonly HistoryPiece[],
  common: number,
): Rewrite {
  const stored = view === undefined ? [] : segmentsOf(view);
  const last = pieces.at(-1);
  const trailing = last?.kind === 'new' ? last.messages.length : 0;
  const parts: (Segment | { newFrom: number; newTo: number })[] = [];
  let fresh = 0;
  for (const piece of pieces) {
    if (piece.kind === 'kept') parts.push(...cut(stored, piece.from, piece.to));
    else if (piece !== last) {
      parts.push({ newFrom: fresh, newTo: fresh + piece.messages.length });
    }
    if (piece.kind === 'new') fresh += piece.messages.length;
  }
  return { parts, inParts: fresh - trailing, common };
}

/** The ids of the messages at places `[from, to)`. */
export function cut(segments: readonly Segment[], from: number, to: number): Segment[] {
  const found: Segment[] = [];
  let place = 0;
  for (const [low, high] of segments) {
    const start = Math.max(from - place, 0);
    const end = Math.min(to - place, high - low);
    if (start < end) found.push([low + start, low + end]);
    place += high - low;
    if (place >= to) break;
  }
  return found;
}

/**
 * The view of a rewrite whose new rows begin at `row` of a branch. A range that ends where the new rows begin needs no
 * mention, it is the beginning of the own rows: a window that slides over the history is one number.
 */
export function viewOfRewrite(rewrite: Rewrite, branch: number, row: number, rows: number): View {
  const before: Segment[] = [];
  for (const part of rewrite.parts) {
    const next: Segment =
      'newFrom' in part
        ? [messageRowId(branch, row + part.newFrom), messageRowId(branch, row + part.newTo)]
        : part;
    const last = before.at(-1);
    if (last !== undefined && last[1] === next[0]) before[before.length - 1] = [last[0], next[1]];
    else before.push(next);
  }
  let from = row + rewrite.inParts;
  const last = before.at(-1);
  if (
    last !== undefined &&
    last[1] === messageRowId(branch, from) &&
    last[0] >= messageRowId(branch, 0)
  ) {
    from = last[0] - messageRowId(branch, 0);
    before.pop();
  }
  return { before, branch, from, to: row + rows };
}

/** The ranges before a view's own rows as they are stored: `[branch, from, to]`, branch 0 being its own. */
export function toStored({ before, branch }: View): string {
  const rows = before.map(([from, to]) => {
    const of = Math.floor(from / rowsPerBranch);
    return [of === branch ? 0 : of, from - messageRowId(of, 0), to - messageRowId(of, 0)];
  });
  return JSON.stringify(rows);
}

/** Stored ranges of a view on a branch. */
export function fromStored(text: string, branch: number): Segment[] {
  const rows = JSON.parse(text) as readonly (readonly [number, number, number])[];
  return rows.map(([of, from, to]) => [
    messageRowId(of || branch, from),
    messageRowId(of || branch, to),
  ]);
}

/** The other branches that a view holds rows of. */
export function otherBranches({ before, branch }: View): readonly number[] {
  const branches = before.map(([from]) => Math.floor(from / rowsPerBranch));
  return [...new Set(branches)].filter((of) => of !== branch);
}

/** The ranges of rows that are in none of these. */
export function gapsBetween(
  ranges: readonly (readonly [number, number])[],
): readonly (readonly [number, number])[] {
  const gaps: [number, number][] = [];
  let from = 0;
  for (const [low, high] of ranges.toSorted(([a], [b]) => a - b)) {
    if (low > from) gaps.push([from, low]);
    from = Math.max(from, high);
  }
  if (from < rowsPerBranch) gaps.push([from, rowsPerBranch]);
  return gaps;
}
