import { type ReactNode, useMemo, useState } from 'react';
import type { Artifact, Part } from '../../../src/client/index.ts';
import { Media } from '../conversation/part-view.tsx';
import { artifactText, languageOf, storedSize } from '../lib/artifacts.ts';
import { bytes } from '../lib/format.ts';
import type { Json } from '../lib/json.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { LongText, More, piece } from '../ui/long-text.tsx';

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
  const stored = storedSize(part);
  if ('media' in part && stored !== undefined) {
    return (
      <span className="chip">
        <Icon name="file" size={12} /> {part.media.contentType ?? 'file'} · {bytes(stored)}
      </span>
    );
  }
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

/** JSON that is worth a tree; anything else is a text. */
function parsed(text: string): Json | undefined {
  if (text.length > 1_000_000 || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
