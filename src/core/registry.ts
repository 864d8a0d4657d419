import { closest } from './closest.ts';
import { WaymarkError } from './error.ts';

/** What an app has defined, by key: `/model/{name}`, `/tool/{name}` and so on. */
export interface Registry<T> {
  /** Adds a value; a key that is taken is ALREADY_EXISTS. */
  register(key: string, value: T): void;
  /** The value under a key; an unknown one is NOT_FOUND and says what exists. */
  lookup(key: string): T;
  /** The value under a key, if there is one. */
  find(key: string): T | undefined;
  /** All values in the order of their definition; only those whose key starts with the prefix if one is given. */
  list(prefix?: string): readonly T[];
  /** All keys, in the order of their definition. */
  keys(prefix?: string): readonly string[];
}

/** A new, empty registry. */
export function createRegistry<T>(): Registry<T> {
  const entries = new Map<string, T>();
  const keys = (prefix = ''): readonly string[] =>
    [...entries.keys()].filter((key) => key.startsWith(prefix));
  return {
    register(key, value) {
      if (entries.has(key)) {
        throw new WaymarkError(
          'ALREADY_EXISTS',
          `"${key}" is already defined; choose another name.`,
        );
      }
      entries.set(key, value);
    },
    lookup(key) {
      const value = entries.get(key);
      if (value === undefined) throw unknownKey(key, keys());
      return value;
    },
    find: (key) => entries.get(key),
    list: (prefix = '') =>
      [...entries].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value),
    keys,
  };
}

const shown = 10;

function unknownKey(key: string, keys: readonly string[]): WaymarkError {
  // Somebody who asks for a model wants to hear of models.
  const kind = key.slice(0, key.indexOf('/', 1) + 1);
  const candidates = keys.filter((other) => other.startsWith(kind));
  const sorted = closest(key, candidates);
  const more = sorted.length > shown ? ` and ${sorted.length - shown} more` : '';
  const existing =
    sorted.length === 0
      ? `Nothing is defined under "${kind}".`
      : `Defined: ${sorted.slice(0, shown).join(', ')}${more}.`;
  return new WaymarkError('NOT_FOUND', `"${key}" is not defined. ${existing}`, {
    details: { key, existing: sorted.slice(0, shown) },
  });
}
