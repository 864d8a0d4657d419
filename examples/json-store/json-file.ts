import { EventEmitter } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Clock } from 'waymark/store';
import { type Data, noData, type Transaction } from './tables.ts';

/** All tables in one JSON file. A write replaces the whole file, so it happens completely or not at all. */
export class JsonFile {
  readonly #emitter = new EventEmitter().setMaxListeners(0);
  readonly #path: string;
  readonly #clock: Clock;
  #text: string;
  #data: Data;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#text = existsSync(path) ? readFileSync(path, 'utf8') : JSON.stringify(noData());
    this.#data = JSON.parse(this.#text) as Data;
  }

  /** Calls a listener after each change of a key. Returns a function that unsubscribes. */
  subscribe(key: string, listener: () => void): () => void {
    this.#emitter.on(key, listener);
    return () => void this.#emitter.off(key, listener);
  }

  async read<Result>(work: (tx: Transaction) => Result): Promise<Awaited<Result>> {
    return await work({ data: this.#data, now: this.#clock.now(), emit: () => {} });
  }

  /** Runs a change and saves it. The work is synchronous, so no other call sees half of it. */
  async write<Result>(work: (tx: Transaction) => Result): Promise<Result> {
    const changed = new Set<string>();
    try {
      const now = this.#clock.now();
      const result = work({ data: this.#data, now, emit: (key) => changed.add(key) });
      const text = JSON.stringify(this.#data);
      writeFileSync(`${this.#path}.tmp`, text);
      renameSync(`${this.#path}.tmp`, this.#path);
      this.#text = text;
      // Listeners come later, so that they find the change complete.
      for (const key of changed) queueMicrotask(() => this.#emitter.emit(key));
      return result;
    } catch (error) {
      // A refused or failed change leaves nothing behind.
      this.#data = JSON.parse(this.#text) as Data;
      throw error;
    }
  }
}
