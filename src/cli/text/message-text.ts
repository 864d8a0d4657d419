import type { Message, Part } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Artifact } from '../../protocol/state.ts';
import { oneLine, safe, shortJson } from './safe.ts';
import type { Style } from './style.ts';

const speakers = { user: 'You', model: 'Agent', tool: 'Tool', system: 'System' } as const;

/** A message as lines, after the name of its role. */
export function messageLines({ role, content }: Message, style: Style): string[] {
  const lines = content.flatMap((part) => partText(part, style).split('\n'));
  return lines.map((line, at) => {
    const margin = at === 0 ? style.bold(speakers[role].padEnd(7)) : ' '.repeat(7);
    return `${margin}${line}`.trimEnd();
  });
}

/** A part as text. */
export function partText(part: Part, style: Style): string {
  if ('text' in part) return safe(part.text);
  if ('reasoning' in part) return style.dim(safe(part.reasoning));
  if ('toolRequest' in part) {
    const { name, input } = part.toolRequest;
    return `${style.accent(`→ ${safe(name)}`)} ${shortJson(input ?? {})}`;
  }
  if ('toolResponse' in part) {
    const { name, output } = part.toolResponse;
    return `${style.accent(`← ${safe(name)}`)} ${shortJson(output ?? null)}`;
  }
  if ('media' in part) return `[${oneLine(part.media.contentType ?? 'media')}]`;
  if ('resource' in part) return `[${oneLine(part.resource.uri)}]`;
  return shortJson('data' in part ? part.data : part.custom);
}

/** The text of a message on one line. */
export function messageSummary({ content }: Message, length?: number): string {
  const text = content.map((part) => ('text' in part ? part.text : '')).join(' ');
  return oneLine(text, length);
}

/** The text of an artifact; `undefined` when it is not text. */
export function artifactText({ parts }: Artifact): string | undefined {
  if (!parts.every((part) => 'text' in part)) return undefined;
  return textOf({ content: parts });
}

/** An artifact on one line: its name and size. */
export function artifactSummary(artifact: Artifact): string {
  const { name = '(unnamed)', parts } = artifact;
  const text = artifactText(artifact);
  const size =
    text === undefined
      ? `${parts.length} ${parts.length === 1 ? 'part' : 'parts'}`
      : `${text.split('\n').length} lines`;
  return `${oneLine(name)} (${size})`;
}
