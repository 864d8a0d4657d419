import type { Store } from '../../store/contract/store.ts';
import { forever, type ProcessProbe } from './probe.ts';

/** Calls that change nothing that a crash could lose. */
const reads = /^(get|list|load|read|open|verify|export|import|total|sums|heartbeat)/;

/** A store as a process of a crash test reaches it: the process can die before and after each write. */
export function linkStore(store: Store, probe: ProcessProbe): Store {
  return linked(store, probe, '');
}

function linked<Part extends object>(part: Part, probe: ProcessProbe, prefix: string): Part {
  const known = new Map<PropertyKey, unknown>();
  return new Proxy(part, {
    get(_, key) {
      const value: unknown = Reflect.get(part, key);
      if (known.has(key) || value === undefined) return known.get(key);
      const name = String(key);
      const own =
        typeof value === 'object' && value !== null
          ? linked(value, probe, name === 'runs' ? '' : `${name}.`)
          : typeof value === 'function' && !/^on[A-Z]/.test(name)
            ? linkedCall(name, prefix, probe, (args) => value.apply(part, args))
            : value;
      known.set(key, own);
      return own;
    },
  });
}

function linkedCall(
  key: string,
  prefix: string,
  probe: ProcessProbe,
  call: (args: readonly unknown[]) => unknown,
) {
  if (key === 'close') return async () => {};
  return async (...args: readonly unknown[]): Promise<unknown> => {
    const isRead = reads.test(key);
    const name = `store write ${prefix}${key}`;
    if (!isRead) await probe.pass(`before ${name}`);
    if (probe.dead) return forever();
    const result = await call(args);
    if (key === 'getStep' && result === undefined) probe.step(stepOf(args), false);
    if (key === 'saveStep') probe.step(stepOf(args), true);
    if (!isRead) await probe.pass(`after ${name}`);
    return probe.dead ? forever() : result;
  };
}

/** The name of a step without the number of its input and the key of its tool call. */
function stepOf([, key]: readonly unknown[]): string {
  return String(key).replace(/^\d+:([0-9a-f]{64} )?/, '');
}
