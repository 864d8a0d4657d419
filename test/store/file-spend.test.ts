import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { fileStore } from '../../src/store/file/index.ts';
import { temporaryDirectory } from './file-support.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function openStore(): Promise<{ store: ReturnType<typeof fileStore>; file: string }> {
  const { path, remove } = await temporaryDirectory();
  const store = fileStore(path, { durability: 'normal' });
  cleanups.push(async () => {
    await store.close?.();
    await remove();
  });
  return { store, file: join(path, 'spend/ann.jsonl') };
}

/** What many models cost: a line of half a megabyte. */
const entries = Array.from({ length: 3_000 }, (_, at) => ({
  agent: 'chat',
  model: `model-${at}`,
  usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3, cost: { USD: 5 } },
  calls: 1,
}));
const spend = { owner: 'ann', agent: 'chat', sessionId: 's', entries };

test('S499 a file of what was spent is rewritten when it has grown, and keeps its sums', async () => {
  const { store, file } = await openStore();
  const sizes: number[] = [];
  for (let turn = 0; turn < 6; turn++) {
    await store.spend?.add(spend);
    sizes.push((await stat(file)).size);
  }
  expect(Math.max(...sizes)).toBeLessThan(6 * (sizes[0] ?? 0));
  expect(sizes.some((size, at) => size < (sizes[at - 1] ?? 0))).toBe(true);
  const total = await store.spend?.total({ owner: 'ann' });
  expect(total).toMatchObject({ inputTokens: 18_000, cost: { USD: 90_000 } });
  expect(await store.maintenance?.verify()).toEqual([]);
});

test('S499 `verify` finds what was changed or cut in the files of what was spent', async () => {
  const { store, file } = await openStore();
  await store.spend?.add({ ...spend, entries: entries.slice(0, 2) });
  await store.spend?.add({ ...spend, entries: entries.slice(0, 2) });
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('"input":1', '"input":9'));
  expect(await store.maintenance?.verify()).toMatchObject([
    { kind: 'hash', message: expect.stringContaining('ann.jsonl') },
  ]);
  await writeFile(file, text.slice(0, -5));
  expect(await store.maintenance?.verify()).toMatchObject([{ kind: 'unfinished' }]);
});

test('S499 a damaged line in a file that has grown fails no turn, and `verify` finds it', async () => {
  const { store, file } = await openStore();
  await store.spend?.add(spend);
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('"input":1', '"input":9'));
  for (let turn = 0; turn < 6; turn++) await store.spend?.add(spend);
  expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(10);
  expect(await store.maintenance?.verify()).toMatchObject([
    { kind: 'hash', message: expect.stringContaining('ann.jsonl') },
  ]);
});

test('S499 `verify` reads one file of what was spent after the other, and can be stopped between two', async () => {
  const { store } = await openStore();
  for (const owner of ['ann', 'bob']) {
    await store.spend?.add({ ...spend, owner, entries: entries.slice(0, 2) });
  }
  const steps: number[] = [];
  await store.maintenance?.verify({ onProgress: (done) => steps.push(done) });
  expect(steps).toEqual([1, 2]);
  const stop = new AbortController();
  const stopped = store.maintenance?.verify({
    onProgress: () => stop.abort(),
    signal: stop.signal,
  });
  await expect(stopped).rejects.toThrow();
});
