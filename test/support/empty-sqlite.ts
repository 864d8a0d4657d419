import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Encryption, sqliteStore } from '../../src/store/sqlite/index.ts';

const made = new Map<string, Promise<Buffer>>();

/** Writes an empty store to a path. To create its tables takes longer than most tests, so it is done once. */
export async function writeEmptySqlite(path: string, encryption?: Encryption): Promise<void> {
  const kind = encryption === undefined ? 'plain' : 'encrypted';
  const bytes = made.get(kind) ?? create(encryption);
  made.set(kind, bytes);
  await writeFile(path, await bytes);
}

async function create(encryption?: Encryption): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-empty-'));
  const path = join(folder, 'store.db');
  const store = sqliteStore(path, encryption === undefined ? {} : { encryption });
  await store.open?.();
  await store.close?.();
  const bytes = await readFile(path);
  await rm(folder, { recursive: true });
  return bytes;
}
