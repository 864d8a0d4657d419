import { type ReactNode, useState } from 'react';
import type { Message, Part } from '../../../src/client/index.ts';
import { Media } from '../conversation/part-view.tsx';
import type { Json } from '../lib/json.ts';
import { JsonTree } from '../ui/json-tree.tsx';

/** A message as a model reads or writes it: its text as it is, without Markdown. */
export function SentMessage({
  message: { role, content },
  isNew,
}: {
  readonly message: Message;
  readonly isNew: boolean;
}): ReactNode {
  return (
    <article className="sent-message" data-new={isNew || undefined}>
      <div className="sent-role">
        {role} {isNew && <span className="chip">new</span>}
      </div>
      <div className="sent-parts">
        {content.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
          <SentPart key={at} part={part} />
        ))}
        {content.length === 0 && <span className="quiet">empty</span>}
      </div>
    </article>
  );
}

function SentPart({ part }: { readonly part: Part }): ReactNode {
  if ('text' in part) return <PlainText text={part.text} />;
  if ('reasoning' in part) {
    return (
      <>
        <span className="quiet">reasoning</span>
        <PlainText text={part.reasoning} />
      </>
    );
  }
  if ('toolRequest' in part) {
    const { name, input } = part.toolRequest;
    return <ToolPart what="calls" name={name} value={input} />;
  }
  if ('toolResponse' in part) {
    const { name, output } = part.toolResponse;
    return <ToolPart what="result of" name={name} value={output} />;
  }
  if ('media' in part) return <Media media={part.media} />;
  return <JsonTree value={part as unknown as Json} label="Part" open={2} />;
}

function ToolPart({
  what,
  name,
  value,
}: {
  readonly what: string;
  readonly name: string;
  readonly value: Json | undefined;
}): ReactNode {
  return (
    <div className="sent-tool">
      <p>
        <span className="quiet">{what}</span> <span className="tool-name">{name}</span>
      </p>
      <JsonTree value={value} label={`${what} ${name}`} open={2} />
    </div>
  );
}

const short = 1_200;

function PlainText({ text }: { readonly text: string }): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > short * 1.2;
  return (
    <div className="sent-text" dir="auto">
      {isLong && !isWhole ? `${text.slice(0, short)}…` : text}
      {isLong && (
        <button type="button" className="text-button" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${text.length.toLocaleString()} characters`}
        </button>
      )}
    </div>
  );
}
