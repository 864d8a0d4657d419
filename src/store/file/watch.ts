import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../core/time/clock.ts';
import type { Directory } from './directory.ts';
import type { Disk } from './disk.ts';
import { eventsFolder, runsFolder } from './layout.ts';
import type { Transaction } from './transaction.ts';

/** How often the files are polled in case the system sends no notification. */
const pollEvery = 200;

/** Watches for changes by other processes while this one has subscribers. */
export interface Watch {
  /** Watches a run or snapshot. Returns a function that stops it and calls `unsubscribe`. */
  add(id: string, unsubscribe: () => void): () => void;
  close(): void;
}

/**
 * Watches the files of runs and events. The system notifies of most changes at once, and polling finds the others. Reading
 * new content notifies the listeners.
 */
export function createWatch(directory: Directory, transaction: Transaction): Watch {
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
      // This was only a hint; callers that read get the error.
      await transaction.read(() => directory.refreshListened([...listened.keys()])).catch(() => {});
      // Changes that follow within a moment are read together.
      await systemClock.sleep(1);
    }
    isLooking = false;
  };

  const close = (): void => {
    stop?.();
    stop = undefined;
  };

  return {
    add(id, unsubscribe) {
      listened.set(id, (listened.get(id) ?? 0) + 1);
      stop ??= watchFolders(directory.disk, {
        onChange: (name) => {
          if (listened.size > 0 && (name === undefined || !directory.isAsLeft(name))) void look();
        },
        // Not as soon as the last subscriber leaves: the next turn subscribes again.
        onTick: () => (listened.size === 0 ? close() : void look()),
      });
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        unsubscribe();
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
