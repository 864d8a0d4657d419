import type { Store } from '../../store/contract/store.ts';
import { forever, type ProcessProbe } from './probe.ts';

/** Calls that change nothing that a crash could lose. */
const reads = /^(get|list|load|read|open|verify|export|import|total|sums|heartbeat|close)/;

/** A store as a simulated process reaches it: it can die before and after each write. */
export function linkStore(store: Store, probe: ProcessProbe): Store {
  return wrap(store, probe, '');
}

function wrap<Part extends object>(part: Part, probe: ProcessProbe, prefix: string): Part {
  const entries = Object.entries(part).map(([key, value]): [string, unknown] => {
    if (typeof value === 'object' && value !== null) {
      return [key, wrap(value, probe, `${key}.`)];
    }
    if (typeof value !== 'function' || /^on[A-Z]/.test(key)) return [key, value];
    const call = (...args: unknown[]): Promise<unknown> => value.apply(part, args);
    if (key === 'close') return [key, async () => {}];
    if (reads.test(key)) {
      return [
        key,
        async (...args: unknown[]) => {
          if (probe.dead) return forever();
          const found = await call(...args);
          if (probe.dead) return forever();
          if (key === 'getStep' && found === undefined) probe.step(stepOf(args), false);
          return found;
        },
      ];
    }
    const name = `store write ${prefix.replace('runs.', '')}${key}`;
    return [
      key,
      async (...args: unknown[]) => {
        await probe.pass(`before ${name}`);
        const result = await call(...args);
        if (key === 'saveStep') probe.step(stepOf(args), true);
        await probe.pass(`after ${name}`);
        return result;
      },
    ];
  });
  return Object.fromEntries(entries) as Part;
}

/** The name of a step without the number of its input and the key of its tool call. */
function stepOf([, key]: readonly unknown[]): string {
  return String(key).replace(/^\d+:([0-9a-f]{64} )?/, '');
}
