import { abortError } from '../../../src/core/async/signal.ts';
import type { Clock } from '../../../src/core/time.ts';
import type { Model } from '../../../src/generate/model.ts';
import type { Store } from '../../../src/store/contract/store.ts';

interface Waiting {
  readonly who: string;
  readonly resume: () => void;
}

interface Timer {
  due: number;
  readonly every?: number;
  readonly fire: () => void;
}

/** Longer than any race takes; more steps mean that nothing comes to an end. */
const maxSteps = 20_000;

/** Milliseconds that may pass while others are still at work. */
const soon = 500;

/**
 * Decides, by a seed, the order in which everything that waits continues: store calls, model answers, timers. Between two
 * decisions all that can run runs, so the same seed gives the same order. Time is its own: it moves when it is decided so,
 * or when nothing else waits.
 */
export class Scheduler implements Clock {
  readonly #random: () => number;
  readonly #waiting: Waiting[] = [];
  readonly #timers = new Set<Timer>();
  readonly #frozen = new Set<string>();
  /** The names of the tasks that continued, in order. */
  readonly trace: string[] = [];
  #now = Date.parse('2026-01-01T00:00:00Z');
  #ids = 0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(abortError(signal));
      const timer: Timer = { due: this.#now + ms, fire: resolve };
      this.#timers.add(timer);
      signal?.addEventListener('abort', () => {
        this.#timers.delete(timer);
        reject(abortError(signal));
      });
    });
  }

  every(ms: number, fn: () => void): () => void {
    const timer: Timer = { due: this.#now + ms, every: ms, fire: fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Ids in the order in which they are asked for. */
  readonly newId = (): string =>
    `01890000-0000-7000-8000-${(++this.#ids).toString(16).padStart(12, '0')}`;

  /** A number from 0 to below `most`. */
  choose(most: number): number {
    return Math.floor(this.#random() * most);
  }

  /** Waits to be chosen. */
  pause(who = ''): Promise<void> {
    return new Promise((resume) => this.#waiting.push({ who, resume }));
  }

  /** Tasks with this name are not chosen until they are thawed. */
  freeze(who: string): void {
    this.#frozen.add(who);
  }

  thaw(who: string): void {
    this.#frozen.delete(who);
  }

  /** Runs work to its end, and decides which task continues next. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    let isDone = false;
    const result = work().finally(() => {
      isDone = true;
    });
    result.catch(() => {});
    for (let step = 0; ; step++) {
      // Everything that can run has run when the event loop comes round. On a busy machine turns let others run in between, which
      // takes a round more.
      for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
      if (isDone) return await result;
      if (step > maxSteps) throw new Error('Nothing comes to an end.');
      this.#goOn();
    }
  }

  #goOn(): void {
    const ready = this.#waiting.filter(({ who }) => !this.#frozen.has(who));
    const chosen = ready[this.choose(ready.length)];
    const next = this.#nextTimer();
    const isSoon = next !== undefined && next.due - this.#now < soon;
    if (chosen === undefined || (isSoon && this.#random() < 0.05)) {
      this.#passTime(next);
      return;
    }
    this.#waiting.splice(this.#waiting.indexOf(chosen), 1);
    this.trace.push(chosen.who);
    chosen.resume();
  }

  #nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (next === undefined || timer.due < next.due) next = timer;
    return next;
  }

  #passTime(next: Timer | undefined): void {
    if (next === undefined)
      throw new Error('Deadlock: every task waits for something that no task does.');
    this.#now = Math.max(this.#now, next.due);
    if (next.every === undefined) this.#timers.delete(next);
    else next.due += next.every;
    next.fire();
  }
}

// mulberry32: small, and good enough to shuffle.
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One process's way to a store: each call waits to be chosen before it is made and before its answer arrives. */
export function scheduledStore(store: Store, scheduler: Scheduler, who: string): Store {
  const wrap = <T extends object>(part: T): T => {
    const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
      if (typeof value === 'object' && value !== null) return [key, wrap(value)];
      if (typeof value !== 'function') return [key, value];
      if (/^on[A-Z]/.test(key)) {
        return [
          key,
          (id: string, listener: () => void) =>
            value(id, () => void scheduler.pause(who).then(listener)),
        ];
      }
      const call = async (...args: unknown[]): Promise<unknown> => {
        await scheduler.pause(who);
        try {
          return await value(...args);
        } finally {
          await scheduler.pause(who);
        }
      };
      return [key, call];
    });
    return Object.fromEntries(entries) as T;
  };
  return wrap(store);
}

/** A model that waits to be chosen before each piece of its answer; `counted` adds the number of the call. */
export function scheduledModel(
  scheduler: Scheduler,
  who: string,
  pieces: readonly string[],
  { counted = false }: { readonly counted?: boolean } = {},
): Model {
  let calls = 0;
  return {
    name: who,
    provider: 'scheduled',
    async run(_request, { stream, signal }) {
      const answer = counted ? [...pieces, `${++calls}`] : pieces;
      for (const text of answer) {
        await scheduler.pause(who);
        if (signal.aborted) throw abortError(signal);
        await stream({ content: [{ text }] });
      }
      await scheduler.pause(who);
      return {
        message: { role: 'model', content: [{ text: answer.join('') }] },
        finishReason: 'stop',
      };
    },
  };
}
