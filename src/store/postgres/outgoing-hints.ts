import type { Hint } from '../sql/database/database.ts';
import { toPayload } from './listener.ts';

/** Postgres takes 8000 bytes; a hint is at most 43, and their sender 42. */
const maxHints = 180;

/** Sends hints to other processes, those that come while others are on their way together. */
export class OutgoingHints {
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #sender: string;
  #waiting = new Map<string, Hint>();
  #sending: Promise<void> | undefined;

  constructor(sender: string, send: (payload: string) => Promise<unknown>) {
    this.#sender = sender;
    this.#send = send;
  }

  tell(hints: readonly Hint[]): void {
    for (const hint of hints) this.#waiting.set(`${hint.kind}:${hint.id}`, hint);
    if (this.#waiting.size === 0) return;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Resolves when nothing is left to send. */
  async settled(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting.values()];
      this.#waiting = new Map();
      for (let at = 0; at < all.length; at += maxHints) {
        // Subscribers poll once a second in case a hint is lost.
        await this.#send(toPayload(all.slice(at, at + maxHints), this.#sender)).catch(() => {});
      }
    }
  }
}
