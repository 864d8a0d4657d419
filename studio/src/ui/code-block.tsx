import { memo, type ReactNode, useMemo } from 'react';
import { CopyButton } from './copy-button.tsx';
import { highlight } from './highlight.ts';

/** A piece of code within a text. */
export const CodeBlock = memo(function CodeBlock({
  text,
  language,
}: {
  readonly text: string;
  readonly language: string;
}) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || 'text'}</span>
        <CopyButton text={text} label="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <Code text={text} language={language} />
      </pre>
    </figure>
  );
});

/** Code with its words, strings and comments told apart. */
export function Code({
  text,
  language,
}: {
  readonly text: string;
  readonly language: string;
}): ReactNode {
  const tokens = useMemo(() => highlight(text, language), [text, language]);
  return (
    <code>
      {tokens.map((token, at) =>
        token.kind === 'plain' ? (
          token.text
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a token is known by its place
          <span key={at} className={`token-${token.kind}`}>
            {token.text}
          </span>
        ),
      )}
    </code>
  );
}
