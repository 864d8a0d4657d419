import { opendir } from 'node:fs/promises';
import { letOthersRun } from '../../../core/platform.ts';

/** How many names are read, sorted or merged before others can use the thread. */
const portion = 512;

/** The names in a folder, sorted. To read and sort ten thousand at once would take up to 40 ms. */
export async function listInSteps(path: string): Promise<readonly string[]> {
  const lists: (readonly string[])[] = [];
  let names: string[] = [];
  for await (const { name } of await opendir(path, { bufferSize: portion })) {
    names.push(name);
    if (names.length < portion) continue;
    lists.push(names.sort());
    names = [];
    await letOthersRun();
  }
  lists.push(names.sort());
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
