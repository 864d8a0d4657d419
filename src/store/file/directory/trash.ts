import type { Disk } from './disk.ts';
import { trashFolder } from './layout.ts';

/**
 * Removes what is in the trash: folders of sessions that are deleted, moved there because that takes one step. Nothing there is
 * needed any more, so this takes no lock, which `hold` gets for the end.
 */
export async function emptyTrash(
  disk: Disk,
  hold: (work: () => void) => Promise<void>,
): Promise<void> {
  const names = await disk.listLater(trashFolder);
  if (names.length === 0) return;
  for (const name of names) await disk.removeLater(`${trashFolder}/${name}`);
  await hold(() => {
    disk.removeIfEmpty(trashFolder);
  });
}
