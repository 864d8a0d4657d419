import type { FileInfo } from '../../../src/client/index.ts';

/** A folder of a workspace. One that only leads to another one is joined with it. */
export interface Folder {
  /** Its name, or the names down to it. */
  readonly name: string;
  readonly folders: readonly Folder[];
  readonly files: readonly { readonly name: string; readonly info: FileInfo }[];
  /** Number of files in it and below. */
  readonly count: number;
}

/** The folders of a list of files. */
export function folderTree(files: readonly FileInfo[]): Folder {
  return toFolder(
    '',
    files.map((info) => ({ rest: info.path.split('/'), info })),
  );
}

interface Placed {
  readonly rest: readonly string[];
  readonly info: FileInfo;
}

function toFolder(name: string, placed: readonly Placed[]): Folder {
  const inner = new Map<string, Placed[]>();
  const files: { readonly name: string; readonly info: FileInfo }[] = [];
  for (const { rest, info } of placed) {
    const [first = '', ...below] = rest;
    if (below.length === 0) files.push({ name: first, info });
    else {
      const known = inner.get(first) ?? [];
      known.push({ rest: below, info });
      inner.set(first, known);
    }
  }
  const folders = [...inner].map(([each, content]) => joined(toFolder(each, content)));
  return { name, folders, files, count: placed.length };
}

function joined(folder: Folder): Folder {
  const [only, ...others] = folder.folders;
  if (only === undefined || others.length > 0 || folder.files.length > 0) return folder;
  return { ...only, name: `${folder.name}/${only.name}` };
}
