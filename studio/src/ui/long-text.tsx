import { type ReactNode, useMemo, useState } from 'react';
import { count, plural } from '../lib/format.ts';
import { Code } from './code-block.tsx';

/** How much of a long text is drawn at once. */
export const piece = 40_000;

/** A long text or code, drawn a piece at a time. */
export function LongText({
  text,
  language,
  name,
}: {
  readonly text: string;
  readonly language: string;
  readonly name: string;
}): ReactNode {
  const [shown, setShown] = useState(piece);
  const lines = useMemo(() => plural(text.split('\n').length, 'line'), [text]);
  return (
    <section className="preview" aria-label={name}>
      <p className="quiet">
        {lines} · {count(text.length)} characters
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0} dir="auto">
        <Code text={text.slice(0, shown)} language={language} />
      </pre>
      <More rest={text.length - shown} onMore={() => setShown(shown * 2)} />
    </section>
  );
}

/** A button that draws more of a long text; nothing when there is no more. */
export function More({
  rest,
  onMore,
}: {
  readonly rest: number;
  readonly onMore: () => void;
}): ReactNode {
  if (rest <= 0) return null;
  return (
    <button type="button" className="text-button" onClick={onMore}>
      Show more ({count(rest)} characters left)
    </button>
  );
}
