import type { Disk } from '../directory/disk.ts';
import { sessionsFolder } from '../directory/layout.ts';

/** The folders of the scopes of all owners, in the order of their names. */
export async function* scopeFolders(disk: Disk): AsyncGenerator<string, void> {
  for (const owner of await disk.listLater(sessionsFolder)) {
    yield* scopesOf(disk, `${sessionsFolder}/${owner}`);
  }
}

/** The folders of the scopes of an owner. */
export async function* scopesOf(disk: Disk, owner: string): AsyncGenerator<string, void> {
  for (const scope of await disk.listLater(owner)) yield `${owner}/${scope}`;
}

/** The folders of families in the folders of scopes. */
export async function* familiesIn(
  disk: Disk,
  scopes: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<string, void> {
  for await (const scope of scopes) {
    for (const name of await disk.listLater(scope)) {
      // Pointers have a dot in their names, folders never.
      if (!name.includes('.')) yield `${scope}/${name}`;
    }
  }
}
