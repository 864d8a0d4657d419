import type { Hint } from './database.ts';

/** Listeners of this process, by what they listen to. */
export interface Hub {
  readonly size: number;
  /** What is listened to. */
  hints(): readonly Hint[];
  listen(hint: Hint, listener: () => void): () => void;
  tell(hint: Hint): void;
  /** Tells everybody: something may have changed, and nobody knows what. */
  tellAll(): void;
}

/** A hub. Listeners are called later, never inside the call that tells them. */
export function createHub(): Hub {
  const listeners = new Map<string, Set<() => void>>();
  const hints = new Map<string, Hint>();
  const call = (set: ReadonlySet<() => void> | undefined): void => {
    if (set === undefined) return;
    queueMicrotask(() => {
      for (const listener of [...set]) listener();
    });
  };
  return {
    get size() {
      return listeners.size;
    },
    hints: () => [...hints.values()],
    listen(hint, listener) {
      const key = keyOf(hint);
      // A function of its own, so that the same listener may listen twice and stop once.
      const own = (): void => listener();
      const set = listeners.get(key) ?? new Set();
      listeners.set(key, set.add(own));
      hints.set(key, hint);
      return () => {
        set.delete(own);
        if (set.size > 0 || listeners.get(key) !== set) return;
        listeners.delete(key);
        hints.delete(key);
      };
    },
    tell: (hint) => call(listeners.get(keyOf(hint))),
    tellAll: () => listeners.forEach(call),
  };
}

function keyOf({ kind, id }: Hint): string {
  return `${kind} ${id}`;
}
