import { type ReactNode, useState } from 'react';
import type { Part } from '../../../src/client/index.ts';
import { bytes } from '../lib/format.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';

/** A part of a message that is no tool call. */
export function PartView({
  part,
  isPlain,
}: {
  readonly part: Part;
  readonly isPlain: boolean;
}): ReactNode {
  if ('text' in part) {
    if (part.text === '') return null;
    return <TextPart text={part.text} isPlain={isPlain} />;
  }
  if ('reasoning' in part) return <Reasoning text={part.reasoning} />;
  if ('media' in part) return <Media media={part.media} />;
  if ('data' in part) return <JsonTree value={part.data} label="Data" />;
  if ('custom' in part) return <JsonTree value={part.custom} label="Custom part" />;
  if ('resource' in part) return <span className="chip">{part.resource.uri}</span>;
  return null;
}

/** Longer texts are shown in part: drawing a megabyte takes seconds. */
const longest = 40_000;
const firstPart = 4_000;

function TextPart({
  text,
  isPlain,
}: {
  readonly text: string;
  readonly isPlain: boolean;
}): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > longest && !isWhole;
  const shown = isCut ? `${text.slice(0, firstPart)}…` : text;
  return (
    <>
      {isPlain ? (
        <p className="plain-text" dir="auto">
          {shown}
        </p>
      ) : (
        <Markdown text={shown} />
      )}
      {isCut && (
        <button type="button" className="text-button" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </>
  );
}

function Reasoning({ text }: { readonly text: string }): ReactNode {
  if (text.trim() === '') return null;
  return (
    <details className="fold">
      <summary>
        <Icon name="chevron" size={12} /> Thought
      </summary>
      <div className="fold-body quiet">
        <Markdown text={text} />
      </div>
    </details>
  );
}

/** A picture, a sound or a file. What is not in the message itself is not fetched. */
export function Media({
  media,
}: {
  readonly media: { readonly url: string; readonly contentType?: string | undefined };
}): ReactNode {
  const { url, contentType = /^data:([^;,]+)/.exec(url)?.[1] ?? '' } = media;
  const isHere = url.startsWith('data:');
  if (isHere && contentType.startsWith('image/')) {
    return <img className="media" src={url} alt={`Attached ${contentType}`} />;
  }
  if (isHere && contentType.startsWith('audio/')) {
    // biome-ignore lint/a11y/useMediaCaption: what a model or a person sent has no captions
    return <audio className="media" src={url} controls />;
  }
  return (
    <span className="chip">
      <Icon name="file" size={12} /> {contentType || 'file'}
      {isHere ? ` · ${bytes(Math.round((url.length * 3) / 4))}` : ` · ${url.slice(0, 120)}`}
    </span>
  );
}
