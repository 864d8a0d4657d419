import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The text of every file below a directory, by its relative name. */
export async function readTree(directory: string): Promise<Map<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
  const texts = names.map((name) => readFile(join(directory, name), 'latin1'));
  return new Map((await Promise.all(texts)).map((text, at) => [names[at] ?? '', text]));
}
