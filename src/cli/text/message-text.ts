import type { Message, Part } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { Style, Terminal } from '../terminal.ts';
import { count, oneLine, safe, shortJson } from './format.ts';

const speakers = { user: 'You', model: 'Agent', tool: 'Tool', system: 'System' } as const;

/** A message as lines, after the name of its role. */
export function messageLines({ role, content }: Message, style: Style): string[] {
  const lines = content.flatMap((part) => partText(part, style).split('\n'));
  return lines.map((line, at) => {
    const margin = at === 0 ? style.bold(speakers[role].padEnd(7)) : ' '.repeat(7);
    return `${margin}${line}`.trimEnd();
  });
}

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
    text === undefined ? count(parts.length, 'part') : `${text.split('\n').length} lines`;
  return `${oneLine(name)} (${size})`;
}

/** Prints a turn as it streams: text continues on its line, everything else starts a new one. */
export class ChunkPrinter {
  readonly #terminal: Terminal;
  #atLineStart = true;
  #speaker = '';
  #answered = new Set<string>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  print({ modelChunk, status, artifact, agent = '' }: Chunk): void {
    if (modelChunk) {
      if (agent !== this.#speaker) this.#introduce(agent);
      for (const part of modelChunk.content) this.#part(part);
    }
    const { style } = this.#terminal;
    const whose = agent === '' ? '' : `${safe(agent)} `;
    if (status !== undefined) this.line(style.dim(`· ${whose}${shortJson(status)}`));
    if (artifact) this.line(style.accent(`▤ ${artifactSummary(artifact)}`));
  }

  /** Prints a line, after the end of the current one. */
  line(text: string): void {
    this.end();
    this.#terminal.print(text);
  }

  /** Ends the current line. */
  end(): void {
    if (!this.#atLineStart) this.#terminal.write('\n');
    this.#atLineStart = true;
  }

  #introduce(agent: string): void {
    this.#speaker = agent;
    this.end();
    if (agent !== '') this.line(this.#terminal.style.dim(`${safe(agent)}:`));
  }

  #part(part: Part): void {
    const { style } = this.#terminal;
    if ('text' in part) this.#text(safe(part.text));
    else if ('reasoning' in part) this.#text(style.dim(safe(part.reasoning)));
    else if ('toolResponse' in part) {
      // A tool that streams progress repeats its output; print only changes.
      const text = partText(part, style);
      if (this.#answered.has(text)) return;
      this.#answered.add(text);
      this.line(text);
    } else this.line(partText(part, style));
  }

  #text(text: string): void {
    if (text === '') return;
    this.#terminal.write(text);
    this.#atLineStart = text.endsWith('\n');
  }
}
