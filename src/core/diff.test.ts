import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DiffLine, diffLines } from './diff.ts';

const marks = (lines: readonly DiffLine[]): string[] =>
  lines.map(({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`);

test('a line that was changed goes and comes where it stood', () => {
  expect(marks(diffLines('a\nb\nc', 'a\nB\nc\nd'))).toEqual([' a', '-b', '+B', ' c', '+d']);
  expect(diffLines('a', 'a')).toEqual([{ kind: 'same', text: 'a', before: 1, after: 1 }]);
});

/** Few different lines, so that they meet again often. */
const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 24 });

test('both texts can be read off a comparison, with the numbers of their lines', () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = diffLines(before.join('\n'), after.join('\n'));
      const old = diff.filter(({ kind }) => kind !== 'added');
      const now = diff.filter(({ kind }) => kind !== 'removed');
      expect(old.map(({ text }) => text)).toEqual(before);
      expect(now.map(({ text }) => text)).toEqual(after);
      expect(old.map((line) => line.before)).toEqual(before.map((_, at) => at + 1));
      expect(now.map((line) => line.after)).toEqual(after.map((_, at) => at + 1));
    }),
  );
});

test('no comparison is shorter', () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = diffLines(before.join('\n'), after.join('\n'));
      const same = diff.filter(({ kind }) => kind === 'same').length;
      expect(same).toBe(maxInCommon(before, after));
    }),
  );
});

test('texts that have nothing in common stand one after the other', () => {
  const before = Array.from({ length: 1_000 }, (_, at) => `old ${at}`);
  const after = Array.from({ length: 1_000 }, (_, at) => `new ${at}`);
  const kinds = diffLines(before.join('\n'), after.join('\n')).map(({ kind }) => kind);
  expect(kinds.lastIndexOf('removed')).toBe(999);
  expect(kinds.indexOf('added')).toBe(1_000);
});

/** The length of the longest common subsequence, by the book. */
function maxInCommon(a: readonly string[], b: readonly string[]): number {
  let row = Array<number>(b.length + 1).fill(0);
  for (const line of a) {
    const next = [0];
    for (const [at, other] of b.entries()) {
      const best = Math.max(row[at + 1] ?? 0, next[at] ?? 0);
      next.push(line === other ? (row[at] ?? 0) + 1 : best);
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
