import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import pg from 'pg';
import type { Readout } from './store-readout.ts';

const stores = new URL('../fixtures/stores/', import.meta.url);

/** The versions that left fixtures: releases by their number, commits between two releases by their hash. */
export const versions: readonly string[] = readdirSync(stores);

/** The versions whose code is kept as well. */
export const runnable: readonly string[] = versions.filter((version) =>
  ['gz', 'br'].some((ending) => existsSync(new URL(`${version}/stores.mjs.${ending}`, stores))),
);

/** Whether a version left a store of a kind. */
export function hasFixture(release: string, kind: string): boolean {
  return ['gz', 'br'].some((ending) =>
    existsSync(new URL(`${release}/${kind}.expected.json.${ending}`, stores)),
  );
}

/** A fixture of a release, unpacked. */
export function fixture(release: string, name: string): Buffer {
  const larger = new URL(`${release}/${name}.br`, stores);
  if (existsSync(larger)) return brotliDecompressSync(readFileSync(larger));
  return gunzipSync(readFileSync(new URL(`${release}/${name}.gz`, stores)));
}

/** The result of reading a store with the version that wrote it. */
export function expectedOf(release: string, store: string): Readout {
  return JSON.parse(fixture(release, `${store}.expected.json`).toString()) as Readout;
}

/** The key of the encrypted fixtures. */
export function fixtureKey(release: string): Uint8Array {
  return readFileSync(new URL(`${release}/key.txt`, stores)).subarray(0, 32);
}

/** Puts a folder of the file store's where it can be changed. */
export function unpackFiles(release: string, folder: string): void {
  const files = JSON.parse(fixture(release, 'file.json').toString()) as Record<string, string>;
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, 'latin1');
  }
}

/** Loads a dump into a new schema. */
export async function loadDump(
  release: string,
  name: string,
  connectionString: string,
  schema: string,
): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(fixture(release, `${name}.sql`).toString().replaceAll('@schema', schema));
  await client.end();
}
