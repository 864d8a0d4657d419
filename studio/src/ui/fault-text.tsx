import { Fragment, type ReactNode } from 'react';

/** An error with its stack, as text; the frames of libraries stand back behind those of the app. */
export function FaultText({ text }: { readonly text: string }): ReactNode {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a page may show several, so it is no region, and no part of a form
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long stack scrolls, also by keyboard
    <div role="group" className="fault-stack" aria-label="Error with stack" tabIndex={0}>
      <pre dir="ltr">
        {text.split('\n').map((line, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text keep their places
          <span key={at} data-line={kindOf(line)}>
            {withBreaks(line)}
            {'\n'}
          </span>
        ))}
      </pre>
    </div>
  );
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
