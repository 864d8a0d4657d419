import { Random } from './random.ts';

// The globals that code could take chance or time from. Import this module before anything in `src`: `core/platform.ts` keeps the
// functions that it finds when it is loaded.

const realImmediate = globalThis.setImmediate;
let immediates: (() => void)[] = [];
let random = new Random(0);
let elapsed = 0;

/** Starts an episode: randomness follows from its seed, and measured time continues far from the episode before it. */
export function seedHost(seed: number): void {
  random = new Random(seed);
  immediates = [];
  elapsed = Math.ceil(elapsed / 1e6 + 1) * 1e6;
}

/** Lets measured time pass, so that code that takes breaks takes one now and then. */
export function passElapsed(ms: number): void {
  elapsed += ms;
}

/** Runs everything that can run without a decision: promises, and immediates in their order. */
export async function settle(): Promise<void> {
  await drainPromises();
  while (immediates.length > 0) {
    const due = immediates;
    immediates = [];
    for (const call of due) call();
    await drainPromises();
  }
}

// All promises that can settle have settled when the event loop comes round.
function drainPromises(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve));
}

function replace(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}

replace(globalThis, 'setImmediate', (fn: (...args: unknown[]) => void, ...args: unknown[]) => {
  immediates.push(() => fn(...args));
});
replace(performance, 'now', () => elapsed);
replace(globalThis.crypto, 'getRandomValues', (into: Uint8Array) => {
  for (let at = 0; at < into.length; at++) into[at] = random.below(256);
  return into;
});
for (const name of ['setTimeout', 'setInterval']) {
  replace(globalThis, name, () => {
    throw new Error(`${name} was called in the simulation. Use the clock of the app.`);
  });
}
// Maintenance pauses during garbage collections, which depend on the machine.
replace(globalThis, 'PerformanceObserver', undefined);
