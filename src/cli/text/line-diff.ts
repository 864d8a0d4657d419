/** One line of a difference: in both, only in the new text, only in the old one. */
export interface DiffLine {
  readonly kind: ' ' | '+' | '-';
  readonly text: string;
}

/** Above this size the middle is shown as replaced: the comparison takes the product of both lengths. */
const maxCells = 4_000_000;

/** The added, removed and common lines of two texts. */
export function lineDiff(from: string, to: string): DiffLine[] {
  const a = from.split('\n');
  const b = to.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end))
    end++;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind: ' ', text }));
  return [
    ...same(a.slice(0, start)),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...same(a.slice(a.length - end)),
  ];
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed: DiffLine[] = a.map((text) => ({ kind: '-', text }));
  const added: DiffLine[] = b.map((text) => ({ kind: '+', text }));
  if (a.length === 0 || b.length === 0 || a.length * b.length > maxCells) {
    return [...removed, ...added];
  }
  const width = b.length + 1;
  // The length of the longest common subsequence of the remaining lines.
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: ' ', text: a[i] ?? '' });
      i++;
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: '-', text: a[i++] ?? '' });
    } else {
      lines.push({ kind: '+', text: b[j++] ?? '' });
    }
  }
  return lines;
}

/** The changed lines with their context; a gap is shown as `…`. */
export function withContext(lines: readonly DiffLine[], around = 2): DiffLine[] {
  const shown = new Set<number>();
  for (const [at, { kind }] of lines.entries()) {
    if (kind === ' ') continue;
    for (let near = at - around; near <= at + around; near++) shown.add(near);
  }
  return lines.flatMap((line, at) => {
    if (shown.has(at)) return [line];
    return shown.has(at - 1) || (at === 0 && shown.size > 0) ? [{ kind: ' ', text: '…' }] : [];
  });
}
