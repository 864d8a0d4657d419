import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that are in use once everything that nobody holds has been collected. */
export async function usedBytes(): Promise<number> {
  // Contexts that are made from here on can collect; the test runner's own cannot.
  setFlagsFromString('--expose-gc');
  // Otherwise a collection drops compiled code, which counts as new when it is compiled again.
  setFlagsFromString('--no-flush-bytecode');
  const collect = runInNewContext('gc') as () => void;
  for (let at = 0; at < 3; at++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
