import { closest, likely } from './closest.ts';
import { WaymarkError } from './error.ts';

/** The definitions of an app, by key: `/model/{name}`, `/tool/{name}` and so on. */
export interface Registry<T> {
  /** Adds a value; a key that is taken is ALREADY_EXISTS. */
  register(key: string, value: T): void;
  /** The value under a key; an unknown one is NOT_FOUND and says what exists. `advice` is added unless a similar name exists. */
  lookup(key: string, advice?: () => string | undefined): T;
  find(key: string): T | undefined;
  /** All values in the order of their definition; only those whose key starts with the prefix if one is given. */
  list(prefix?: string): readonly T[];
  /** All keys, in the order of their definition. */
  keys(prefix?: string): readonly string[];
}

export function createRegistry<T>(): Registry<T> {
  const entries = new Map<string, T>();
  const keys = (prefix = ''): readonly string[] =>
    [...entries.keys()].filter((key) => key.startsWith(prefix));
  return {
    register(key, value) {
      if (entries.has(key)) {
        const { kind, name } = partsOf(key);
        throw new WaymarkError(
          'ALREADY_EXISTS',
          `There is already a ${kind} "${name}". Choose another name.`,
        );
      }
      entries.set(key, value);
    },
    lookup(key, advice) {
      const value = entries.get(key);
      if (value === undefined) throw unknownKey(key, keys(), advice);
      return value;
    },
    find: (key) => entries.get(key),
    list: (prefix = '') =>
      [...entries].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value),
    keys,
  };
}

const shown = 10;

function unknownKey(
  key: string,
  keys: readonly string[],
  advise: (() => string | undefined) | undefined,
): WaymarkError {
  const { kind, name } = partsOf(key);
  // A caller who asks for a model gets suggestions of models only.
  const candidates = keys.filter((other) => partsOf(other).kind === kind);
  const names = candidates.map((other) => partsOf(other).name);
  const sorted = closest(name, names);
  const meant = likely(name, names);
  const more = sorted.length > shown ? ` and ${sorted.length - shown} more` : '';
  const existing =
    sorted.length === 0
      ? `There are none.`
      : `Defined: ${sorted.slice(0, shown).join(', ')}${more}.`;
  const advice = advise?.();
  const advised = advice === undefined ? existing : `${existing} ${advice}`;
  const hint = meant === undefined ? advised : `Did you mean "${meant}"? ${existing}`;
  return new WaymarkError('NOT_FOUND', `No ${kind} "${name}" is defined. ${hint}`, {
    details: { key, existing: sorted.slice(0, shown).map((other) => `/${kind}/${other}`) },
  });
}

/** The kind and the name in a key such as `/tool/weather`. */
function partsOf(key: string): { readonly kind: string; readonly name: string } {
  const slash = key.indexOf('/', 1);
  if (slash === -1) return { kind: 'action', name: key };
  return { kind: key.slice(1, slash), name: key.slice(slash + 1) };
}
