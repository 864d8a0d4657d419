import { getOrMake } from '../get-or-make.ts';

export interface Emitter<Args extends readonly unknown[] = []> {
  readonly size: number;
  /** Returns a function that unsubscribes. The same function may subscribe twice. */
  subscribe(listener: (...args: Args) => void): () => void;
  /** Calls the current listeners in the order in which they subscribed. */
  emit(...args: Args): void;
  clear(): void;
}

/** Creates an emitter that calls its listeners synchronously. */
export function createEmitter<Args extends readonly unknown[] = []>(): Emitter<Args> {
  const listeners = new Set<(...args: Args) => void>();
  return {
    get size() {
      return listeners.size;
    },
    subscribe(listener) {
      // A wrapper for each subscription, so that one function that subscribed twice can unsubscribe once.
      const own = (...args: Args): void => listener(...args);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    emit(...args) {
      for (const listener of [...listeners]) listener(...args);
    },
    clear: () => listeners.clear(),
  };
}

/** Listeners by key, for "something about this may have changed". */
export interface KeyedEmitter<Key = string> {
  /** How many keys have listeners. */
  readonly size: number;
  /** The keys that have listeners. */
  keys(): readonly Key[];
  /** Calls the listener on each event of the key; returns a function that unsubscribes. */
  subscribe(key: Key, listener: () => void): () => void;
  emit(key: Key): void;
  /** Calls all listeners: something may have changed, and it is not known what. */
  emitAll(): void;
}

/** Creates a keyed emitter. It calls listeners in a microtask, so that the change they react to is complete. */
export function createKeyedEmitter<Key = string>(
  toText: (key: Key) => string = String,
): KeyedEmitter<Key> {
  type Listeners = Set<() => void>;
  const entries = new Map<string, { readonly key: Key; readonly listeners: Listeners }>();
  const call = ({ listeners }: { readonly listeners: Listeners }): void =>
    queueMicrotask(() => {
      for (const listener of [...listeners]) listener();
    });
  return {
    get size() {
      return entries.size;
    },
    keys: () => [...entries.values()].map(({ key }) => key),
    subscribe(key, listener) {
      const text = toText(key);
      const entry = getOrMake(entries, text, () => ({ key, listeners: new Set() }));
      const own = (): void => listener();
      entry.listeners.add(own);
      return () => {
        entry.listeners.delete(own);
        if (entry.listeners.size === 0 && entries.get(text) === entry) entries.delete(text);
      };
    },
    emit(key) {
      const entry = entries.get(toText(key));
      if (entry) call(entry);
    },
    emitAll: () => entries.forEach(call),
  };
}
