import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../core/time/clock.ts';
import type { DirectoryCache } from './cache.ts';
import type { Disk } from './disk.ts';
import { eventsFolder, runsFolder } from './layout.ts';
import type { DirectoryTransaction } from './transaction.ts';

/** How often the files are polled in case the system sends no notification. */
const pollEvery = 200;

/** Watches for changes by other processes while this one has subscribers. */
export interface Watch {
  /** Someone listens for a run or snapshot. Returns the way to say that no more. */
  add(id: string): () => void;
  close(): void;
}

/**
 * Watches the files of runs and events: the system tells of a change at once, and a look now and then makes up for what it
 * does not tell. Reading what is new tells the listeners.
 */
export function createWatch(cache: DirectoryCache, transaction: DirectoryTransaction): Watch {
  const listened = new Map<string, number>();
  let stop: (() => void) | undefined;
  let isLooking = false;
  let isNews = false;

  const look = async (): Promise<void> => {
    isNews = true;
    if (isLooking) return;
    isLooking = true;
    while (isNews && listened.size > 0) {
      isNews = false;
      // It was only a hint; a reader gets the error.
      await transaction.read(() => cache.refreshListened([...listened.keys()])).catch(() => {});
      // The first look is at once; then one for all that changes within a moment.
      await systemClock.sleep(1);
    }
    isLooking = false;
  };

  const close = (): void => {
    stop?.();
    stop = undefined;
  };

  return {
    add(id) {
      listened.set(id, (listened.get(id) ?? 0) + 1);
      stop ??= watchFolders(cache.disk, {
        onChange: (name) => {
          if (listened.size > 0 && (name === undefined || !cache.isAsLeft(name))) void look();
        },
        // Not as soon as the last subscriber leaves: the next turn subscribes again.
        onTick: () => (listened.size === 0 ? close() : void look()),
      });
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        const left = (listened.get(id) ?? 1) - 1;
        if (left > 0) listened.set(id, left);
        else listened.delete(id);
      };
    },
    close,
  };
}

/** Called for a changed file, with its name where the system provides it. */
type OnChange = (name: string | undefined) => void;

function watchFolders(
  disk: Disk,
  { onChange, onTick }: { readonly onChange: OnChange; readonly onTick: () => void },
): () => void {
  const watchers = [runsFolder, eventsFolder].map((folder) => watchFolder(disk, folder, onChange));
  const stopPolling = systemClock.every(pollEvery, onTick);
  return () => {
    for (const watcher of watchers) watcher?.close();
    stopPolling();
  };
}

function watchFolder(disk: Disk, folder: string, onChange: OnChange): FSWatcher | undefined {
  try {
    disk.makeFolder(folder);
    const watcher = watch(join(disk.root, folder), { persistent: false }, (_, name) =>
      onChange(name === null ? undefined : `${folder}/${name}`),
    );
    // Nothing to do: polling continues.
    watcher.on('error', () => {});
    return watcher;
  } catch {
    return undefined;
  }
}
