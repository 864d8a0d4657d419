import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileStore } from '../../src/store/file/index.ts';
import { readTree } from '../support/read-tree.ts';
import { expectedOf, unpackFiles } from '../support/store-fixtures.ts';
import { lifeScopes } from '../support/store-life.ts';
import { readout } from '../support/store-readout.ts';
import { dieAfter } from './file-intercept.ts';
import { temporaryDirectory } from './file-support.ts';

// The runs of the fixtures ended long ago; their events are kept all the same.
const eventsTtl = 10 ** 14;
const release = 'b61e1ec';

let place = { path: '', remove: async (): Promise<void> => {} };
beforeEach(async () => {
  place = await temporaryDirectory();
});
afterEach(() => place.remove());

/** The store in a directory as it reads after it was opened. */
async function contents(directory: string): Promise<unknown> {
  const store = fileStore(directory, { eventsTtl, durability: 'normal' });
  const read = await readout(store, lifeScopes);
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.close?.();
  return read;
}

test('S742: a store of an earlier format keeps its files in a backup', async () => {
  unpackFiles(release, place.path);
  const before = await readTree(place.path);
  expect(await contents(place.path)).toMatchObject(expectedOf(release, 'file'));
  const backup = await readTree(join(place.path, 'backup-format-4'));
  const isMoved = ([name]: readonly [string, string]): boolean => name.includes('/');
  expect([...backup]).toEqual([...before].filter(isMoved));
  // A second time there is nothing to convert.
  await contents(place.path);
  expect(await readdir(place.path)).not.toContain('backup-format-5');
});

test('S742: a process that dies while it converts a store loses nothing', async () => {
  const original = join(place.path, 'original');
  unpackFiles(release, original);
  let moments = 0;
  for (let changes = 0; ; changes += 7) {
    const path = join(place.path, String(changes));
    cpSync(original, path, { recursive: true });
    const dying = fileStore(path, { eventsTtl, durability: 'normal' });
    const died = await dieAfter(changes, async () => dying.open?.());
    await dying.close?.();
    expect(await contents(path)).toMatchObject(expectedOf(release, 'file'));
    if (!died) break;
    moments++;
  }
  expect(moments).toBeGreaterThan(5);
});

test('S742: damage in a store of an earlier format is still reported after the conversion', async () => {
  unpackFiles(release, place.path);
  const names = [...(await readTree(place.path)).keys()];
  const journal = names.find((name) => name.endsWith('main/journal.jsonl')) ?? '';
  const path = join(place.path, journal);
  writeFileSync(path, readFileSync(path, 'utf8').replace('"turnIndex":0', '"turnIndex":7'));
  const other = join(place.path, names.find((name) => name.endsWith('asked/journal.jsonl')) ?? '');
  // A line that was never finished is left out.
  appendFileSync(other, '{"half');
  const store = fileStore(place.path, { eventsTtl });
  expect(await store.maintenance?.verify()).toMatchObject([
    { kind: 'hash', message: expect.stringContaining(journal) },
  ]);
  await store.close?.();
});
