import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';

const wrapped = new WeakMap<object, object>();

/**
 * The same store, whose unexpected errors say which of its calls failed: the caller of a turn should see what was not
 * written, and a driver's own text is nothing for a client.
 */
export function namedStore<S extends Store | SnapshotStore>(store: S): S {
  return named(store, '');
}

function named<T extends object>(target: T, prefix: string): T {
  const known = wrapped.get(target);
  // Only `named` adds entries, keyed by the wrapped object.
  if (known !== undefined) return known as T;
  const calls = new Map<string | symbol, unknown>();
  const read = (key: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, key, target);
    if (typeof value === 'function') {
      return (...args: unknown[]) =>
        naming(`${prefix}${String(key)}`, Reflect.apply(value, target, args));
    }
    return typeof value === 'object' && value !== null ? named(value, `${String(key)}.`) : value;
  };
  const proxy = new Proxy(Object.create(null), {
    has: (_, key) => key in target,
    get(_, key) {
      if (!calls.has(key)) calls.set(key, read(key));
      return calls.get(key);
    },
  });
  wrapped.set(target, proxy);
  return proxy;
}

function naming(call: string, result: unknown): unknown {
  if (!(result instanceof Promise)) return result;
  return result.catch((cause: unknown) => {
    if (isWaymarkError(cause)) throw cause;
    throw new WaymarkError(
      'INTERNAL',
      `The store failed in ${call}. See the cause in the server's log.`,
      {
        cause,
        details: { storeCall: call },
      },
    );
  });
}
