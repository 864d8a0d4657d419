/** A line of a comparison: in both texts, only in the old one, or only in the new one. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
  /** Its number in the old and in the new text, from 1. */
  readonly before?: number;
  readonly after?: number;
}

/** How many edits are looked for before two texts count as entirely different. */
const maxEdits = 800;

/** Two texts line by line, by Myers' shortest edit; texts too different are shown one after the other. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  const shortest = Math.min(a.length, b.length);
  let start = 0;
  while (start < shortest && a[start] === b[start]) start++;
  let end = 0;
  while (end < shortest - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = editScript(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const kinds: DiffLine['kind'][] = [
    ...Array<'same'>(start).fill('same'),
    ...middle,
    ...Array<'same'>(end).fill('same'),
  ];
  let old = 0;
  let now = 0;
  return kinds.map((kind) => {
    if (kind === 'removed') return { kind, text: a[old] ?? '', before: ++old };
    if (kind === 'added') return { kind, text: b[now] ?? '', after: ++now };
    return { kind, text: a[old] ?? '', before: ++old, after: ++now };
  });
}

function editScript(a: readonly string[], b: readonly string[]): DiffLine['kind'][] {
  const trace = search(a, b);
  if (!trace) {
    return [
      ...Array<'removed'>(a.length).fill('removed'),
      ...Array<'added'>(b.length).fill('added'),
    ];
  }
  const kinds: DiffLine['kind'][] = [];
  let x = a.length;
  let y = b.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const reach = trace[edits] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -edits || (k !== edits && at(reach, k - 1) < at(reach, k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = at(reach, fromK);
    const fromY = fromX - fromK;
    for (; x > fromX && y > fromY; x--, y--) kinds.push('same');
    if (edits > 0) kinds.push(down ? 'added' : 'removed');
    x = fromX;
    y = fromY;
  }
  return kinds.reverse();
}

/** How far each diagonal is reached with 0, 1, 2, … edits; `undefined` when it takes too many. */
function search(a: readonly string[], b: readonly string[]): Map<number, number>[] | undefined {
  let reach = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  const most = Math.min(a.length + b.length, maxEdits);
  for (let edits = 0; edits <= most; edits++) {
    trace.push(reach);
    const next = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && at(reach, k - 1) < at(reach, k + 1));
      let x = down ? at(reach, k + 1) : at(reach, k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      next.set(k, x);
      if (x >= a.length && y >= b.length) return trace;
    }
    reach = next;
  }
  return undefined;
}

function at(reach: ReadonlyMap<number, number>, k: number): number {
  return reach.get(k) ?? -1;
}
