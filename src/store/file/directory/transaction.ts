import type { DirectoryCache } from './cache.ts';
import { recover } from './intent.ts';
import type { Hold, Lock } from './lock.ts';
import { openDirectory } from './open-directory.ts';

/** The only access to the files: opened once, locked, and on the disk before the caller gets the result. */
export interface DirectoryTransaction {
  open(): Promise<void>;
  /** Reads under the lock; without it where nothing can be written. */
  read<Result>(section: () => Result | Promise<Result>): Promise<Result>;
  /** Works on the tables and then saves what that has changed. The result may be a promise that is settled already. */
  write<Result>(work: () => Result | Promise<Result>, save: () => void): Promise<Result>;
}

export function createDirectoryTransaction(
  cache: DirectoryCache,
  lock: Lock,
): DirectoryTransaction {
  const { disk } = cache;
  let opening: Promise<void> | undefined;

  const open = (): Promise<void> => {
    opening ??= openDirectory(cache, lock).catch((error: unknown) => {
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
        (hold) => {
          takeNote(cache, hold);
          return [section()] as const;
        },
        { orWithout: true },
      );
      return await result[0];
    },
    async write(work, save) {
      await open();
      const { result, unsynced } = await lock.hold((hold) => {
        takeNote(cache, hold);
        const result = work();
        try {
          save();
        } catch (error) {
          Promise.resolve(result).catch(() => {});
          cache.forget();
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

// The next holder of the lock cleans up after a process that died.
function takeNote(cache: DirectoryCache, hold: Hold): void {
  if (hold === 'alone') return;
  cache.disk.era++;
  if (hold === 'after others') recover(cache);
}
