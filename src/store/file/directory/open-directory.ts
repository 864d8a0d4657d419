import { WaymarkError } from '../../../core/error.ts';
import { clearedSize } from '../sessions/journal.ts';
import type { DirectoryCache } from './cache.ts';
import { toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { format, formatOf, parseSealed } from './format.ts';
import { recover } from './intent.ts';
import { formatFile, ignored, ignoreFile, lockFile, runsFolder } from './layout.ts';
import type { Lock } from './lock.ts';
import { emptyTrash } from './trash.ts';

/** Makes a directory a store, or finds out that it is one that this version can use. */
export async function openDirectory(cache: DirectoryCache, lock: Lock): Promise<void> {
  const { disk } = cache;
  if (readFormat(disk) === undefined) {
    // Before the lock, which leaves files in the folder.
    checkUnused(disk);
    disk.makeFolder('.');
  }
  let isWritable = true;
  await lock.hold(
    (hold) => {
      disk.era++;
      const found = readFormat(disk);
      if (found === undefined) create(disk);
      isWritable = hold !== 'not';
      if (!isWritable) return;
      if (found !== undefined && found < format) upgrade(cache);
      recover(cache);
      cache.removeResting();
      cache.requests.sweep();
      cache.sweepUploads();
      if (cache.events.runIds().length === 0) return;
      cache.refreshRuns();
      cache.events.dropForgotten();
    },
    { orWithout: true },
  );
  // What a process left that died while it deleted sessions.
  if (isWritable) await emptyTrash(disk, (work) => lock.hold(work));
}

function create(disk: Disk): void {
  checkUnused(disk);
  // One that is there is not ours to change.
  if (disk.stamp(ignoreFile) === undefined) disk.replace(ignoreFile, `${ignored.join('\n')}\n`);
  writeFormat(disk);
}

function writeFormat(disk: Disk): void {
  disk.replace(formatFile, `${toLine({ waymark: format, store: 'file' })}\n`);
}

/** From here on older versions refuse the directory. Journals get their checksums when they are next written to. */
function upgrade({ disk }: DirectoryCache): void {
  writeFormat(disk);
  // Files without a run had another first byte.
  for (const name of disk.list(runsFolder).map((each) => `${runsFolder}/${each}`)) {
    if ((disk.stamp(name)?.size ?? 0) <= clearedSize) disk.unlink(name);
  }
}

/** The format of a directory that is a store already. */
function readFormat(disk: Disk): number | undefined {
  const text = disk.readText(formatFile);
  return text === undefined ? undefined : formatOf(parseSealed(text, formatFile));
}

// What version control keeps in a folder without files, and what a process leaves that died while it made a store.
const harmless = new Set(['.git', '.gitattributes', '.gitkeep', ignoreFile, lockFile]);

/** Refuses a folder that contains other files. */
function checkUnused(disk: Disk): void {
  const other = disk
    .list('.')
    .find((name) => !harmless.has(name) && !name.startsWith(`${lockFile}-`) && !isTemporary(name));
  // Read after the list: a process that makes the store at this moment writes the format first.
  if (other === undefined || readFormat(disk) !== undefined) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The folder "${disk.root}" is not empty and not a store: it holds "${other}" and no "${formatFile}". Give the store an empty folder of its own.`,
  );
}

function isTemporary(name: string): boolean {
  return name === `${formatFile}.tmp` || name === `${ignoreFile}.tmp`;
}
