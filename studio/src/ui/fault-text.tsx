import { Fragment, type ReactNode, useState } from 'react';
import { plural } from '../lib/format.ts';

/** An error as text: the messages of all its causes, then where the first of them was thrown. The whole stack is behind them. */
export function FaultText({ text }: { readonly text: string }): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const lines = text.trimEnd().split('\n');
  const short = inShort(lines);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a page may show several, so it is no region, and no part of a form
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long stack scrolls, also by keyboard
    <div role="group" className="fault-stack" aria-label="Error with stack" tabIndex={0}>
      <Lines lines={isWhole ? lines : short} />
      {short.length < lines.length && (
        <button type="button" className="text-button" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show ${plural(lines.length - short.length, 'more line')}`}
        </button>
      )}
    </div>
  );
}

function Lines({ lines }: { readonly lines: readonly string[] }): ReactNode {
  return (
    <pre dir="ltr">
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text keep their places
        <span key={at} data-line={kindOf(line)}>
          {withBreaks(line)}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}

/** The messages, and the lines of the app in the stack of the last error, which the others come from. */
function inShort(lines: readonly string[]): readonly string[] {
  const messages = lines.filter((line) => kindOf(line) === 'message');
  const root = lines.slice(lines.findLastIndex((line) => kindOf(line) === 'message') + 1);
  const own = root.filter((line) => kindOf(line) === 'own');
  return [...messages, ...(own.length > 0 ? own : root)];
}

function kindOf(line: string): 'message' | 'own' | 'library' {
  if (!/^\s+at /.test(line)) return 'message';
  return /[\\/]node_modules[\\/]|\(?node:|^\s+at (new )?Promise\b/.test(line) ? 'library' : 'own';
}

// A path that is too long for one line continues after a slash, so that names stay whole.
function withBreaks(line: string): ReactNode {
  if (kindOf(line) === 'message') return line;
  return line.split(/(?<=[\\/])/).map((part, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one line keep their places
    <Fragment key={at}>
      {part}
      <wbr />
    </Fragment>
  ));
}
