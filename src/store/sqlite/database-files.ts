import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The absolute paths of the files of a SQLite database; none for one in memory. */
export function databaseFiles(given: string | URL): readonly string[] {
  const [name = ''] = String(given).split('?');
  if (name === '' || name.endsWith(':memory:')) return [];
  const path = name.startsWith('file://') ? fileURLToPath(name) : name.replace(/^file:/, '');
  return ['', '-wal', '-shm', '-journal'].map((end) => resolve(path) + end);
}
