import type { Part } from '../../protocol/message.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { Terminal } from '../terminal.ts';
import { artifactSummary, partText } from './message-text.ts';
import { safe, shortJson } from './safe.ts';

/** Prints a turn as it streams: text continues on its line, everything else starts a new one. */
export class ChunkPrinter {
  readonly #terminal: Terminal;
  readonly #margin: string;
  #atLineStart = true;
  #speaker = '';
  #answered = new Set<string>();

  constructor(terminal: Terminal, margin = '') {
    this.#terminal = terminal;
    this.#margin = margin;
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
    this.#terminal.print(`${this.#margin}${text}`);
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
    const lead = this.#atLineStart ? this.#margin : '';
    this.#terminal.write(lead + text.replaceAll('\n', `\n${this.#margin}`));
    this.#atLineStart = text.endsWith('\n');
  }
}
