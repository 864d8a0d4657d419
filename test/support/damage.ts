import type { Scope, Store } from '../../src/session/store.ts';
import { readout } from './store-readout.ts';

/** Random numbers that come again for the same seed. */
export function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Flips one bit of some bytes, or cuts them, and says what it did. */
export function damage(
  bytes: Buffer,
  random: (below: number) => number,
): { readonly bytes: Buffer; readonly what: string } {
  if (random(8) === 0) {
    const length = random(bytes.length);
    return { bytes: bytes.subarray(0, length), what: `cut at ${length} of ${bytes.length}` };
  }
  const [at, bit] = [random(bytes.length), random(8)];
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ (1 << bit);
  return { bytes: changed, what: `bit ${bit} of byte ${at} of ${bytes.length}` };
}

/** How a store takes damage. `silent`: something reads differently, and neither a read nor `verify` says so. */
export type Outcome = 'harmless' | 'reported' | 'silent';

/** Reads everything of a store that may be damaged, and lets it verify itself. */
export async function outcomeOf(
  open: () => Store,
  scopes: readonly Scope[],
  before: string,
): Promise<Outcome> {
  const store = open();
  let problems = 0;
  const count = (): void => {
    problems++;
  };
  try {
    const faults = await store.maintenance?.verify().catch(count);
    problems += faults?.length ?? 0;
    const read = await readout(store, scopes, count);
    if (problems > 0) return 'reported';
    return JSON.stringify(read) === before ? 'harmless' : 'silent';
  } finally {
    await store.close?.();
  }
}
