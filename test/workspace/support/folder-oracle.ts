import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Everything in a folder except metadata, read without the code under test: type, permissions and content by path. */
export function readFolder(root: string, path = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, path)).sort()) {
    if (path === '' && name === '.waymark') continue;
    const inner = path === '' ? name : `${path}/${name}`;
    const at = join(root, inner);
    const stat = lstatSync(at);
    if (stat.isSymbolicLink()) found[inner] = `link to ${readlinkSync(at)}`;
    else if (stat.isDirectory())
      Object.assign(found, { [inner]: 'folder' }, readFolder(root, inner));
    else {
      const hash = createHash('sha256').update(readFileSync(at)).digest('hex');
      found[inner] = `${(stat.mode & 0o777).toString(8)} ${hash}`;
    }
  }
  return found;
}
