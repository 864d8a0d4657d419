import { type ReactNode, useMemo, useState } from 'react';
import type { Artifact, Part } from '../../../src/client/index.ts';
import { Media } from '../conversation/part-view.tsx';
import { artifactText, languageOf } from '../lib/artifacts.ts';
import { count, plural } from '../lib/format.ts';
import type { Json } from '../lib/json.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Code } from '../ui/code-block.tsx';
import { JsonTree } from '../ui/json-tree.tsx';

/** How much of a long text is drawn at once. */
const piece = 40_000;

/** An artifact as what it is: a text, code, a picture, data. */
export function ArtifactPreview({
  artifact,
  name,
  isSource,
}: {
  readonly artifact: Artifact;
  readonly name: string;
  readonly isSource: boolean;
}): ReactNode {
  if (isSource)
    return <LongText text={artifactText(artifact)} language={languageOf(name)} name={name} />;
  return artifact.parts.map((part, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
    <PartPreview key={at} part={part} name={name} />
  ));
}

function PartPreview({ part, name }: { readonly part: Part; readonly name: string }): ReactNode {
  const language = languageOf(name);
  const json = useMemo(
    () =>
      'text' in part && (language === 'json' || language === '') ? parsed(part.text) : undefined,
    [part, language],
  );
  if ('media' in part) return <Media media={part.media} />;
  if ('data' in part) return <JsonTree value={part.data} label={name} open={3} />;
  if (!('text' in part)) return <JsonTree value={part as unknown as Json} label={name} open={2} />;
  if (json !== undefined) return <JsonTree value={json} label={name} open={3} />;
  if (language === 'md' || language === 'markdown')
    return <LongMarkdown text={part.text} name={name} />;
  return <LongText text={part.text} language={language} name={name} />;
}

function LongMarkdown({ text, name }: { readonly text: string; readonly name: string }): ReactNode {
  const [shown, setShown] = useState(piece);
  return (
    <section className="preview" aria-label={name}>
      <Markdown text={text.slice(0, shown)} />
      <More rest={text.length - shown} onMore={() => setShown(shown * 2)} />
    </section>
  );
}

function LongText({
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

function More({ rest, onMore }: { readonly rest: number; readonly onMore: () => void }): ReactNode {
  if (rest <= 0) return null;
  return (
    <button type="button" className="text-button" onClick={onMore}>
      Show more ({count(rest)} characters left)
    </button>
  );
}

/** JSON that is worth a tree; anything else is a text. */
function parsed(text: string): Json | undefined {
  if (text.length > 1_000_000 || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
