/** A value that others can follow. */
export interface Observable<T> {
  get(): T;
  subscribe(listener: () => void): () => void;
}

/** A value that can be set and followed. */
export interface Source<T> extends Observable<T> {
  set(value: T): void;
}

export function createSource<T>(first: T): Source<T> {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
