import { createEmitter } from '../core/async/emitter.ts';
import type { Clock } from '../core/time/clock.ts';

/** A value that is read at any time and announced not more often than its readers can use. */
export interface Publisher<T> {
  /** What was announced last. */
  get(): T;
  subscribe(listener: () => void): () => void;
  /** Announces the value at once. */
  publish(): void;
  /** Announces it soon, together with what else changes until then. */
  publishSoon(): void;
}

/** Announces what `read` gives; never the same value twice. */
export function createPublisher<T>(options: {
  readonly clock: Clock;
  /** The least number of milliseconds between two announcements of `publishSoon`. */
  readonly throttle: number;
  readonly read: () => T;
}): Publisher<T> {
  const { clock, throttle, read } = options;
  const changed = createEmitter();
  let value = read();
  let waiting = false;

  const publish = (): void => {
    const next = read();
    if (Object.is(next, value)) return;
    value = next;
    changed.emit();
  };
  return {
    get: () => value,
    subscribe: changed.subscribe,
    publish,
    publishSoon() {
      if (waiting) return;
      waiting = true;
      const release = (): void => {
        waiting = false;
        publish();
      };
      if (throttle <= 0) queueMicrotask(release);
      else clock.sleep(throttle).then(release, release);
    },
  };
}
