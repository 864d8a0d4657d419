import { readdir } from 'node:fs/promises';
import { letOthersRun } from '../../../core/platform.ts';

/** How many names are sorted or merged before others can use the thread. */
const portion = 512;

/** The names in a folder, sorted. To sort ten thousand at once would take up to 20 ms. */
export async function listInSteps(path: string): Promise<readonly string[]> {
  // Not `opendir`: it looks at each file where the file system does not tell its type, and fails when one is gone.
  const names = await readdir(path);
  if (names.length <= portion) return names.sort();
  const lists: (readonly string[])[] = [];
  for (let at = 0; at < names.length; at += portion) {
    await letOthersRun();
    lists.push(names.slice(at, at + portion).sort());
  }
  // What is merged goes to the end, so that lists of about the same length meet.
  for (;;) {
    const [a = [], b] = lists.splice(0, 2);
    if (b === undefined) return a;
    lists.push(await merge(a, b));
  }
}

async function merge(a: readonly string[], b: readonly string[]): Promise<readonly string[]> {
  const all: string[] = [];
  for (let [atA, atB] = [0, 0]; all.length < a.length + b.length; ) {
    const [nextA, nextB] = [a[atA], b[atB]];
    const isA = nextB === undefined || (nextA !== undefined && nextA < nextB);
    all.push((isA ? a[atA++] : b[atB++]) as string);
    if (all.length % portion === 0) await letOthersRun();
  }
  return all;
}
