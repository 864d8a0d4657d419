import type { Store } from '../../src/store/contract/store.ts';
import { lifeRequests, lifeScopes, liveIn } from './store-life.ts';
import { readout } from './store-readout.ts';

/** Random numbers that come again for the same seed. */
function createRandom(seed: number): (below: number) => number {
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

/** Fills a store, and gives what it reads as. */
export async function filled(open: () => Store): Promise<string> {
  await liveIn(open);
  const store = open();
  const read = JSON.stringify(await readout(store, lifeScopes, undefined, lifeRequests));
  await store.close?.();
  return read;
}

/** Lets a store that may be damaged verify itself, and reads everything. */
export async function outcomeOf(open: () => Store, before: string): Promise<Outcome> {
  const store = open();
  let problems = 0;
  const count = (): void => {
    problems++;
  };
  try {
    const faults = await store.maintenance?.verify().catch(count);
    problems += faults?.length ?? 0;
    if (problems > 0) return 'reported';
    const read = await readout(store, lifeScopes, count, lifeRequests);
    if (problems > 0) return 'reported';
    return JSON.stringify(read) === before ? 'harmless' : 'silent';
  } finally {
    await store.close?.();
  }
}

/** Damages something so many times, and gives the rounds that nothing reported although something reads differently. */
export async function inflict(
  rounds: number,
  seed: number,
  round: (random: (below: number) => number, no: number) => Promise<[Outcome, string]>,
): Promise<{ readonly counts: Record<Outcome, number>; readonly silent: readonly string[] }> {
  const random = createRandom(seed);
  const counts: Record<Outcome, number> = { harmless: 0, reported: 0, silent: 0 };
  const silent: string[] = [];
  for (let no = 0; no < rounds; no++) {
    const [outcome, what] = await round(random, no);
    counts[outcome]++;
    if (outcome === 'silent') silent.push(`round ${no} of seed ${seed}: ${what}`);
  }
  return { counts, silent };
}
