import { createInterface, type Interface } from 'node:readline';
import type { Terminal } from '../terminal.ts';

/** The lines of the standard input, one at a time. */
export class Lines {
  readonly #reader: Interface;
  readonly #interactive: boolean;
  readonly #queue: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #hasEnded = false;
  /** Called for a line that arrives while none is awaited. */
  onEarly: (() => void) | undefined;

  constructor(terminal: Terminal, onInterrupt: () => void) {
    const { input, output, interactive } = terminal;
    this.#interactive = interactive;
    this.#reader = createInterface(interactive ? { input, output } : { input });
    this.#reader.on('line', (line) => this.#arrive(line));
    this.#reader.on('close', () => this.#end());
    // In raw mode, Ctrl-C is a key, not a signal.
    this.#reader.on('SIGINT', onInterrupt);
  }

  /** The next line; `undefined` at the end of the input. */
  next(prompt: string): Promise<string | undefined> {
    const early = this.#queue.shift();
    if (early !== undefined) return Promise.resolve(early);
    if (this.#hasEnded) return Promise.resolve(undefined);
    // Waits before it asks: an input that answers while the prompt is written must not be queued.
    const line = new Promise<string | undefined>((resolve) => {
      this.#waiting = resolve;
    });
    if (this.#interactive) {
      this.#reader.setPrompt(prompt);
      this.#reader.prompt();
    }
    return line;
  }

  /** The next line, if it has arrived and matches. */
  takeIf(isWanted: (line: string) => boolean): string | undefined {
    const [line] = this.#queue;
    return line !== undefined && isWanted(line) ? this.#queue.shift() : undefined;
  }

  /** The next line, if it has arrived; it stays in the queue. */
  get first(): string | undefined {
    return this.#queue[0];
  }

  unread(line: string): void {
    this.#queue.unshift(line);
  }

  close(): void {
    this.onEarly = undefined;
    this.#reader.close();
  }

  #arrive(line: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting(line);
    else {
      this.#queue.push(line);
      this.onEarly?.();
    }
  }

  #end(): void {
    this.#hasEnded = true;
    this.#waiting?.(undefined);
    this.#waiting = undefined;
  }
}
