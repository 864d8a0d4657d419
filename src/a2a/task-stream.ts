import { WaymarkError } from '../core/error.ts';
import { after, systemClock } from '../core/time.ts';
import type { ResolvedOptions } from './options.ts';

/** Events that are read in a second; a faster agent waits. */
const perSecond = 2_000;
/** How many times `maxMessageBytes` its streams may have during one call, all together. */
const maxTimes = 10;
/** Milliseconds in which pieces of text are joined. */
const joinMs = 50;

/**
 * The streams of a remote agent during one call. Pieces of text that come at nearly the same time are passed on as one: each
 * that is passed on is stored. An agent that sends faster than a client can read is slowed down. One that sends too much in all ends
 * the call with RESOURCE_EXHAUSTED.
 */
export class TaskStream {
  readonly #options: ResolvedOptions;
  readonly #onText: (text: string) => void;
  #bytes = 0;
  #since = performance.now();
  #events = 0;
  #text = '';
  #textLength = 0;
  #cancel: (() => void) | undefined;

  constructor(options: ResolvedOptions, onText: (text: string) => void) {
    this.#options = options;
    this.#onText = onText;
  }

  /** Counts what has arrived; waits if it came too fast. */
  async onBytes(count: number, signal: AbortSignal): Promise<void> {
    this.#bytes += count;
    const most = this.#options.maxMessageBytes * maxTimes;
    if (this.#bytes > most) throw this.#tooMuch(`more than ${most} bytes of events`);
    const left = 1_000 - (performance.now() - this.#since);
    if (left > 0 && this.#events < perSecond) return;
    if (left > 0) await systemClock.sleep(left, signal);
    this.#since = performance.now();
    this.#events = 0;
  }

  /** Takes an event; `text` is what it adds to the answer. */
  onEvent(text: string): void {
    this.#events += 1;
    if (text === '') return;
    this.#textLength += text.length;
    const { maxMessageBytes, clock } = this.#options;
    if (this.#textLength > maxMessageBytes) {
      throw this.#tooMuch(`an answer of more than ${maxMessageBytes} characters`);
    }
    this.#text += text;
    this.#cancel ??= after(clock, joinMs, () => this.flush());
  }

  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const text = this.#text;
    this.#text = '';
    if (text !== '') this.#onText(text);
  }

  #tooMuch(what: string): WaymarkError {
    const { name } = this.#options;
    return new WaymarkError('RESOURCE_EXHAUSTED', `The remote agent "${name}" sent ${what}.`);
  }
}
