import { readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** The folder that the assistant may read and change. */
export interface Workspace {
  read(path: string): Promise<string>;
  write(path: string, text: string): Promise<void>;
}

/** A folder on disk. Paths that lead out of it, also through links, are refused. */
export function openWorkspace(root: string): Workspace {
  const inside = async (path: string): Promise<string> => {
    const folder = await realpath(root);
    const wanted = resolve(folder, path);
    // The file may not exist yet, so the real path of its folder is checked.
    const real = join(await realpath(dirname(wanted)), relative(dirname(wanted), wanted));
    const target = await realpath(real).catch(() => real);
    if (!target.startsWith(folder + sep)) throw new Error(`${path} is outside of the workspace.`);
    return target;
  };
  return {
    read: async (path) => await readFile(await inside(path), 'utf8'),
    write: async (path, text) => await writeFile(await inside(path), text),
  };
}
