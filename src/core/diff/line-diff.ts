import { commonEnds, commonItems } from './common-items.ts';

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
