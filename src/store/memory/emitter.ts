/** Tells listeners by key that something may have changed. */
export interface Emitter {
  subscribe(key: string, listener: () => void): () => void;
  emit(key: string): void;
}

/** A hub for one process. Listeners are called after the change that is being made is whole. */
export function createEmitter(): Emitter {
  const listeners = new Map<string, Set<() => void>>();
  return {
    subscribe(key, listener) {
      // A wrapper of its own, so that the same function may listen twice and stop once.
      const own = (): void => listener();
      const set = listeners.get(key) ?? new Set();
      listeners.set(key, set.add(own));
      return () => {
        set.delete(own);
        if (set.size === 0 && listeners.get(key) === set) listeners.delete(key);
      };
    },
    emit(key) {
      const set = listeners.get(key);
      if (set === undefined) return;
      queueMicrotask(() => {
        for (const listener of set) listener();
      });
    },
  };
}
