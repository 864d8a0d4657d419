import { type ReactNode, useMemo, useState } from 'react';
import { type DiffLine, diffLines } from '../../../src/core/diff.ts';
import { plural } from '../lib/format.ts';

/** Lines around a change that are shown with it. */
const around = 3;
const maxLines = 400;
/** Beyond this a line-by-line comparison takes too long. */
const maxCharacters = 2_000_000;

/** A line of a difference, or lines that are left out. */
export type Shown =
  | DiffLine
  | { readonly kind: 'gap'; readonly lines?: number; readonly at: number };

/** Two texts line by line; what did not change is left out but for a few lines around. */
export function LineDiff({
  before,
  after,
  label,
}: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}): ReactNode {
  const isHuge = before.length + after.length > maxCharacters;
  const lines = useMemo(
    () => (isHuge ? [] : withGaps(diffLines(before, after))),
    [before, after, isHuge],
  );
  if (isHuge) {
    return (
      <p className="quiet">Too large to compare line by line. Download it from Files instead.</p>
    );
  }
  return <LineTable lines={lines} label={label} />;
}

/** The lines of a difference. */
export function LineTable({
  lines,
  label,
}: {
  readonly lines: readonly Shown[];
  readonly label: string;
}): ReactNode {
  const [limit, setLimit] = useState(maxLines);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="line-diff" aria-label={label} tabIndex={0}>
      <table>
        <tbody>
          {lines.slice(0, limit).map((line) => (
            <Line key={keyOf(line)} line={line} />
          ))}
        </tbody>
      </table>
      {lines.length > limit && (
        <button type="button" className="text-button" onClick={() => setLimit(limit + 2_000)}>
          {plural(lines.length - limit, 'more line')}
        </button>
      )}
    </section>
  );
}

function Line({ line }: { readonly line: Shown }): ReactNode {
  if (line.kind === 'gap') {
    return (
      <tr className="gap">
        <td colSpan={4}>
          {line.lines === undefined ? 'Unchanged lines' : `${plural(line.lines, 'line')} unchanged`}
        </td>
      </tr>
    );
  }
  const sign = line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : '';
  return (
    <tr className={line.kind}>
      <td className="number">{line.before}</td>
      <td className="number">{line.after}</td>
      <td className="sign">{sign}</td>
      <td className="text" dir="auto">
        {line.text}
      </td>
    </tr>
  );
}

function keyOf(line: Shown): string {
  return line.kind === 'gap' ? `gap ${line.at}` : `${line.before ?? ''} ${line.after ?? ''}`;
}

function withGaps(lines: readonly DiffLine[]): readonly Shown[] {
  const isNear = new Uint8Array(lines.length);
  for (const [at, { kind }] of lines.entries()) {
    if (kind !== 'same') isNear.fill(1, Math.max(0, at - around), at + around + 1);
  }
  const shown: Shown[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (isNear[at] === 1 && line) shown.push(line);
    else {
      const from = at;
      while (at + 1 < lines.length && isNear[at + 1] === 0) at++;
      shown.push({ kind: 'gap', lines: at - from + 1, at: from });
    }
  }
  return shown;
}
