import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { damage, filled, inflict, outcomeOf } from '../support/damage.ts';
import { readTree } from '../support/read-tree.ts';

const rounds = process.env.LONG === '1' ? 200 : 15;
const seed = Number(process.env.SEED ?? 1);
const eventsTtl = 10 ** 14;

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-damage-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Damages something many times, and expects that none was silent. */
async function expectNoneSilent(round: Parameters<typeof inflict>[2]): Promise<void> {
  const { counts, silent } = await inflict(rounds, seed, round);
  if (process.env.LONG === '1') console.log(expect.getState().currentTestName, counts);
  expect(silent).toEqual([]);
  expect(counts.reported).toBeGreaterThan(0);
}

describe('a flipped bit or a cut file', () => {
  // Requests are small files that a few rounds over the whole store seldom hit.
  test.each([
    ['the file store', /./],
    ['its files of requests', /^requests/],
  ])('S232: is never silent in %s', async (_, hits) => {
    const original = join(folder, 'original');
    const open = (path: string) => fileStore(path, { durability: 'normal', eventsTtl });
    const before = await filled(() => open(original));
    const tree = [...(await readTree(original))].filter(
      ([name]) => !/^(lock|\.gitignore)/.test(name),
    );
    const files = tree.map(([name, text]) => [name, Buffer.from(text, 'latin1')] as const);
    const targets = files.filter(([name]) => hits.test(name));
    const total = targets.reduce((sum, [, bytes]) => sum + bytes.length, 0);
    expect(await outcomeOf(() => open(original), before)).toBe('harmless');
    await expectNoneSilent(async (random, no) => {
      // Large files are hit more often, as on a disk.
      let at = random(total);
      const hit = targets.find(([, bytes]) => {
        at -= bytes.length;
        return at < 0;
      });
      const [name = '', bytes = Buffer.alloc(0)] = hit ?? [];
      const damaged = damage(bytes, random);
      const path = join(folder, String(no));
      for (const [each, content] of files) {
        await mkdir(dirname(join(path, each)), { recursive: true });
        await writeFile(join(path, each), each === name ? damaged.bytes : content);
      }
      const outcome = await outcomeOf(() => open(path), before);
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
    expect(await outcomeOf(() => open(original), before)).toBe('harmless');
    await expectNoneSilent(async (random, no) => {
      const damaged = damage(bytes, random);
      const path = join(folder, `${no}.db`);
      await writeFile(path, damaged.bytes);
      const outcome = await outcomeOf(() => open(path), before);
      for (const end of ['', '-wal', '-shm']) await rm(`${path}${end}`, { force: true });
      return [outcome, damaged.what];
    });
  });

  test('S232: verify ends on a SQLite file that is cut in one of its last pages', async () => {
    const original = join(folder, 'original.db');
    await filled(() => sqliteStore(original, { eventsTtl }));
    const bytes = await readFile(original);
    // A cut page can make an index lead in a circle.
    for (let cut = 1; cut < 40; cut++) {
      const path = join(folder, `${cut}.db`);
      await writeFile(path, bytes.subarray(0, bytes.length - cut * 1_024));
      const store = sqliteStore(path, { eventsTtl });
      const faults = await store.maintenance?.verify().catch(() => ['unreadable']);
      await store.close?.();
      expect(faults, `${cut} KiB`).not.toEqual([]);
    }
  });
});
