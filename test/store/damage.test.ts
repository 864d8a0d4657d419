import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/session/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { createRandom, damage, type Outcome, outcomeOf } from '../support/damage.ts';
import { readTree } from '../support/read-tree.ts';
import { lifeScopes, liveIn } from '../support/store-life.ts';
import { readout } from '../support/store-readout.ts';

const rounds = process.env.LONG === '1' ? 1000 : 25;
const seed = Number(process.env.SEED ?? 1);
const eventsTtl = 10 ** 14;

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-damage-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Fills a store and gives what it reads as. */
async function filled(open: () => Store): Promise<string> {
  await liveIn(open);
  const store = open();
  const read = JSON.stringify(await readout(store, lifeScopes));
  await store.close?.();
  return read;
}

/** Damages something many times, and expects that it was never in silence. */
async function inflict(
  round: (random: (below: number) => number, no: number) => Promise<[Outcome, string]>,
): Promise<void> {
  const random = createRandom(seed);
  const counts: Record<Outcome, number> = { harmless: 0, reported: 0, silent: 0 };
  const silent: string[] = [];
  for (let no = 0; no < rounds; no++) {
    const [outcome, what] = await round(random, no);
    counts[outcome]++;
    if (outcome === 'silent') silent.push(`round ${no} of seed ${seed}: ${what}`);
  }
  if (process.env.LONG === '1') console.log(expect.getState().currentTestName, counts);
  expect(silent).toEqual([]);
  expect(counts.reported).toBeGreaterThan(0);
}

describe('a flipped bit or a cut file', () => {
  test('S232: is never silent in the file store', async () => {
    const original = join(folder, 'original');
    const open = (path: string) => fileStore(path, { durable: false, eventsTtl });
    const before = await filled(() => open(original));
    const tree = [...(await readTree(original))].filter(
      ([name]) => !/^(lock|\.gitignore)/.test(name),
    );
    const files = tree.map(([name, text]) => [name, Buffer.from(text, 'latin1')] as const);
    const total = files.reduce((sum, [, bytes]) => sum + bytes.length, 0);
    expect(await outcomeOf(() => open(original), lifeScopes, before)).toBe('harmless');
    await inflict(async (random, no) => {
      // Large files are hit more often, as on a disk.
      let at = random(total);
      const hit = files.findIndex(([, bytes]) => {
        at -= bytes.length;
        return at < 0;
      });
      const [name = '', bytes = Buffer.alloc(0)] = files[hit] ?? [];
      const damaged = damage(bytes, random);
      const path = join(folder, String(no));
      for (const [each, content] of files) {
        await mkdir(dirname(join(path, each)), { recursive: true });
        await writeFile(join(path, each), each === name ? damaged.bytes : content);
      }
      const outcome = await outcomeOf(() => open(path), lifeScopes, before);
      await rm(path, { recursive: true });
      return [outcome, `${name}: ${damaged.what}`];
    });
  });

  test.each([
    ['plain', {}],
    ['encrypted', { encryption: { key: new Uint8Array(32).fill(9) } }],
  ])('S232: is never silent in a SQLite file, %s', async (_, options) => {
    const original = join(folder, 'original.db');
    const open = (path: string) => sqliteStore(path, { eventsTtl, ...options });
    const before = await filled(() => open(original));
    const bytes = await readFile(original);
    expect(await outcomeOf(() => open(original), lifeScopes, before)).toBe('harmless');
    await inflict(async (random, no) => {
      const damaged = damage(bytes, random);
      const path = join(folder, `${no}.db`);
      await writeFile(path, damaged.bytes);
      const outcome = await outcomeOf(() => open(path), lifeScopes, before);
      for (const end of ['', '-wal', '-shm']) await rm(`${path}${end}`, { force: true });
      return [outcome, damaged.what];
    });
  });
});
