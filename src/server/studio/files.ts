import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { failedPrecondition } from '../../core/error.ts';

/** A file of the built studio, held in memory: there are few, and they are small. */
export interface StudioFile {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
};

// Beside the built server, or, where the sources are run, in the folder that the build fills.
const places = ['./studio/', '../studio/', '../../../dist/studio/'];

/** Reads the built studio: that of a folder, or with `true` the one that comes with this package. */
export async function readStudioFiles(
  from: string | true,
): Promise<ReadonlyMap<string, StudioFile>> {
  const folders =
    from === true ? places.map((place) => fileURLToPath(new URL(place, import.meta.url))) : [from];
  for (const folder of folders) {
    const files = await readFolder(folder);
    if (files.has('index.html')) return files;
  }
  throw failedPrecondition(
    from === true
      ? 'The studio has not been built. Run `npm run build`, or serve without `studio`.'
      : `There is no built studio in "${from}". Expected an index.html there.`,
  );
}

async function readFolder(folder: string): Promise<Map<string, StudioFile>> {
  const files = new Map<string, StudioFile>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const type = types[extname(path)];
    if (!entry.isFile() || type === undefined) continue;
    const body = new Uint8Array(await readFile(path));
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    files.set(path.slice(join(folder, sep).length).replaceAll(sep, '/'), { body, type, etag });
  }
  return files;
}
