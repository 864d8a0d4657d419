/** Positions of an item in two arrays. */
export type ItemPair = readonly [from: number, to: number];

/** How many items two arrays have in common at their starts and at their ends. */
export function commonEnds<Item>(
  a: readonly Item[],
  b: readonly Item[],
  isEqual: (a: Item, b: Item) => boolean,
): { readonly head: number; readonly tail: number } {
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && isEqual(a[head] as Item, b[head] as Item)) head++;
  let tail = 0;
  const [lastOfA, lastOfB] = [a.length - 1, b.length - 1];
  while (tail < shorter - head && isEqual(a[lastOfA - tail] as Item, b[lastOfB - tail] as Item))
    tail++;
  return { head, tail };
}

// Myers, "An O(ND) difference algorithm": a path from (0, 0) to the ends of both arrays, where x advances by a removal, y by
// an addition, and both by a common item. `reach` holds how far x gets on each diagonal k = x - y with a number of edits.
type Reach = ReadonlyMap<number, number>;

/** The items that two arrays have in common, in order: as many as possible, or none if that takes too many edits. */
export function commonItems<Item>(
  a: readonly Item[],
  b: readonly Item[],
  {
    isEqual,
    maxEdits,
  }: { readonly isEqual: (a: Item, b: Item) => boolean; readonly maxEdits: number },
): readonly ItemPair[] {
  if (a.length === 0 || b.length === 0) return [];
  const limit = Math.min(a.length + b.length, maxEdits);
  const reach = new Map<number, number>();
  const history: Reach[] = [];
  for (let edits = 0; edits <= limit; edits++) {
    history.push(new Map(reach));
    for (let k = -edits; k <= edits; k += 2) {
      let { x } = afterEdit(k, edits, reach);
      while (x < a.length && x - k < b.length && isEqual(a[x] as Item, b[x - k] as Item)) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return trace(history, a.length, b.length);
    }
  }
  return [];
}

// Where the last edit leads on a diagonal, and from which one it came: an addition from above, or a removal from the left.
function afterEdit(k: number, edits: number, reach: Reach): { x: number; from: number } {
  if (edits === 0) return { x: 0, from: 0 };
  const added = reach.get(k + 1) ?? -1;
  const removed = reach.get(k - 1) ?? -1;
  return k === -edits || (k !== edits && removed < added)
    ? { x: added, from: k + 1 }
    : { x: removed + 1, from: k - 1 };
}

function trace(history: readonly Reach[], endX: number, endY: number): readonly ItemPair[] {
  const pairs: ItemPair[] = [];
  let x = endX;
  let k = endX - endY;
  for (const [edits, reach] of [...history.entries()].reverse()) {
    const edit = afterEdit(k, edits, reach);
    while (x > edit.x) pairs.push([--x, x - k]);
    x = reach.get(edit.from) ?? 0;
    k = edit.from;
  }
  return pairs.reverse();
}

/** A line of a comparison: in both texts, only in the old one, or only in the new one. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
  /** Its number in the old and in the new text, from 1. */
  readonly before?: number;
  readonly after?: number;
}

/** How many edits are searched for before two texts count as entirely different. */
const maxEdits = 800;

/** Compares two texts line by line. Texts that are too different are shown one after the other. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  const { head, tail } = commonEnds(a, b, isEqual);
  const [oldEnd, newEnd] = [a.length - tail, b.length - tail];
  const middle = commonItems(a.slice(head, oldEnd), b.slice(head, newEnd), { isEqual, maxEdits });
  const lines: DiffLine[] = [];
  let old = 0;
  let now = 0;
  const keep = (oldUntil: number): void => {
    while (old < oldUntil) {
      lines.push({ kind: 'same', text: a[old] ?? '', before: ++old, after: ++now });
    }
  };
  const change = (oldUntil: number, newUntil: number): void => {
    while (old < oldUntil) lines.push({ kind: 'removed', text: a[old] ?? '', before: ++old });
    while (now < newUntil) lines.push({ kind: 'added', text: b[now] ?? '', after: ++now });
  };
  keep(head);
  for (const [oldNext, newNext] of middle) {
    change(head + oldNext, head + newNext);
    keep(old + 1);
  }
  change(oldEnd, newEnd);
  keep(a.length);
  return lines;
}

function isEqual(a: string, b: string): boolean {
  return a === b;
}

/** Only the changed lines and those next to them; each gap becomes one line `…`. */
export function withContext(lines: readonly DiffLine[], around = 2): readonly DiffLine[] {
  const shown = new Set<number>();
  for (const [at, { kind }] of lines.entries()) {
    if (kind === 'same') continue;
    for (let near = at - around; near <= at + around; near++) shown.add(near);
  }
  return lines.flatMap((line, at): DiffLine[] => {
    if (shown.has(at)) return [line];
    const isGapStart = shown.has(at - 1) || (at === 0 && shown.size > 0);
    return isGapStart ? [{ kind: 'same', text: '…' }] : [];
  });
}
