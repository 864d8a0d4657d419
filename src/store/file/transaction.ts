import { failedPrecondition, isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { checkFormat, checkLine, format, formatOf, parseLine, toLine } from './checked-line.ts';
import { convert } from './convert/convert.ts';
import type { Directory } from './directory.ts';
import type { Disk } from './disk.ts';
import { formatFile, ignored, ignoreFile, lockFile, trashFolder } from './layout.ts';
import type { Lock } from './lock.ts';
import { saveChanges } from './save-tree.ts';

/** The only access to the files: opened once, locked, and on the disk before the caller gets the result. */
export interface Transaction {
  open(): Promise<void>;
  /** Reads under the lock; without it in a directory that cannot be written. */
  read<Result>(section: () => Result | Promise<Result>): Promise<Result>;
  /** Changes the tables, and then writes the changes. The result may be a promise that is settled already. */
  write<Result>(work: () => Result | Promise<Result>): Promise<Result>;
}

export function createTransaction(directory: Directory, lock: Lock): Transaction {
  const { disk } = directory;
  let opening: Promise<void> | undefined;

  const open = (): Promise<void> => {
    opening ??= openDirectory(directory, lock).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  return {
    open,
    async read(section) {
      await open();
      const result = await lock.hold(
        (isHeld) => {
          directory.begin(isHeld);
          return [section()] as const;
        },
        { orWithout: true },
      );
      return await result[0];
    },
    async write(work) {
      await open();
      const { result, unsynced } = await lock.hold((isHeld) => {
        directory.begin(isHeld);
        let result: ReturnType<typeof work> | undefined;
        try {
          result = work();
          saveChanges(directory);
        } catch (error) {
          Promise.resolve(result).catch(() => {});
          // A damaged file is found before anything is changed.
          const isDamage = isWaymarkError(error) && error.status === 'DATA_LOSS';
          if (result !== undefined || !isDamage) directory.forget();
          throw error;
        }
        return { result, unsynced: disk.takeUnsynced() };
      });
      try {
        return await result;
      } finally {
        if (unsynced !== undefined) await disk.sync(unsynced);
      }
    },
  };
}

/** Creates a store in a directory, or opens the one that it has. */
async function openDirectory(directory: Directory, lock: Lock): Promise<void> {
  const { disk } = directory;
  if (readFormat(disk) === undefined) {
    // Before the lock, which leaves a file in the folder.
    checkUnused(disk);
    disk.makeFolder('.');
  }
  await lock.hold(
    (isHeld) => {
      directory.begin(isHeld);
      const found = readFormat(disk);
      if (found === undefined) create(disk);
      else if (found < format) {
        if (!isHeld) throw cannotConvert(found);
        convert(disk, found, () => writeFormat(disk));
      }
      if (!isHeld) return;
      disk.remove(trashFolder);
      directory.sweepRequests();
      directory.files.sweepUploads();
    },
    { orWithout: true },
  );
}

function create(disk: Disk): void {
  checkUnused(disk);
  // An existing one belongs to the user.
  if (disk.stat(ignoreFile) === undefined) disk.replace(ignoreFile, [`${ignored.join('\n')}\n`]);
  writeFormat(disk);
}

function writeFormat(disk: Disk): void {
  disk.replace(formatFile, [`${toLine({ waymark: format, store: 'file' })}\n`]);
}

/** The format of a directory that has a store. */
function readFormat(disk: Disk): number | undefined {
  const text = disk.readText(formatFile);
  if (text === undefined) return undefined;
  const line = Buffer.from(text.trimEnd());
  const content = parseLine(line, formatFile, 'its content');
  const found = formatOf(content, formatFile);
  // Format 1 had no checksums.
  if (found > 1 && found <= format) checkLine(line, formatFile, 'its content');
  if (found > format) checkFormat(content, formatFile);
  return found;
}

// Files that version control needs in an empty folder, and that a process leaves which died while it created a store.
const harmless = new Set(['.git', '.gitattributes', '.gitkeep', ignoreFile, lockFile]);
const temporary = new Set([`${formatFile}.tmp`, `${ignoreFile}.tmp`]);

/** Refuses a folder that contains other files. */
function checkUnused(disk: Disk): void {
  const isOther = (name: string): boolean =>
    !harmless.has(name) && !temporary.has(name) && !name.startsWith(`${lockFile}-`);
  const other = disk.list('.').find(isOther);
  // Read after the list: a process that creates the store at this moment writes the format first.
  if (other === undefined || readFormat(disk) !== undefined) return;
  throw failedPrecondition(
    `The folder "${disk.root}" is not empty and not a store: it holds "${other}" and no "${formatFile}". Give the store an empty folder of its own.`,
  );
}

function cannotConvert(found: number): WaymarkError {
  return failedPrecondition(
    `This file store has format ${found} and must be converted to format ${format}, but its directory cannot be written. Open it once with write access.`,
    { details: { format: found, supported: format } },
  );
}
