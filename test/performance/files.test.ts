import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { startPostgres } from '../support/postgres.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-large-files-'));
});
afterEach(async () => {
  await endProcesses();
  rmSync(folder, { recursive: true, force: true });
});

const most = 50_000_000;
/** The driver of Postgres copies each piece into messages, which V8 collects at its own pace. */
const mostOnPostgres = 64_000_000;

interface Told {
  readonly url?: string;
  readonly isStored?: boolean;
  readonly measured?: Readonly<Record<string, number>>;
  readonly expected?: unknown;
}

/** Stores and serves 100 MB in a process of its own, and compares the most memory that it took besides what it had before. */
async function measure(kind: string, place: string, limit = most): Promise<void> {
  const script = bundleChild(new URL('file-worker.ts', import.meta.url));
  const child = startProcess(['--expose-gc', '--no-warnings', script, kind, place]);
  const next = async (): Promise<Told> =>
    JSON.parse(await child.take((line) => (line.startsWith('{') ? line : undefined), 'its report'));
  const { url } = await next();
  await download(`${url}/agents/maker/sessions/small/artifacts/file`);
  child.send('store');
  expect(await next()).toEqual({ isStored: true });
  const served = await download(`${url}/agents/maker/sessions/large/artifacts/file`);
  child.send('report');
  const { measured = {}, expected } = await next();
  expect(served).toEqual(expected);
  for (const [what, bytes] of Object.entries(measured)) {
    expect(bytes, `${kind}: ${what}`).toBeLessThan(limit);
  }
  await child.finished();
}

async function download(url: string): Promise<{ size: number; hash: string }> {
  const hash = createHash('sha256');
  let size = 0;
  const { body } = await fetch(url);
  for await (const chunk of body ?? []) {
    size += chunk.length;
    hash.update(chunk);
  }
  return { size, hash: hash.digest('hex') };
}

test('S635: SQLite stores and serves a file of 100 MB with less than 50 MB of memory', async () => {
  await measure('sqlite', join(folder, 'store.db'));
  await measure('encrypted sqlite', join(folder, 'encrypted.db'));
});

test('S635: the file store stores and serves a file of 100 MB with less than 50 MB of memory', async () => {
  await measure('files', join(folder, 'store'));
});

test('S635: Postgres stores and serves a file of 100 MB with less than 64 MB of memory', async () => {
  const postgres = await startPostgres();
  try {
    await measure('postgres', postgres.connectionString, mostOnPostgres);
  } finally {
    await postgres.stop();
  }
});
