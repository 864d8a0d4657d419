import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Milliseconds of quiet after a change: editors write a file in several steps. */
const quietMs = 80;

/** Watches files, and calls once for a burst of changes. */
export class FileWatch {
  readonly #onChange: (path: string) => void;
  readonly #folders = new Map<
    string,
    { readonly watcher: FSWatcher; readonly names: Set<string> }
  >();
  #timer: NodeJS.Timeout | undefined;

  constructor(onChange: (path: string) => void) {
    this.#onChange = onChange;
  }

  /** Watches one more file. Its folder is watched, as many editors put a new file in the place of the old. */
  add(path: string): void {
    const folder = dirname(path);
    const known = this.#folders.get(folder);
    if (known) {
      known.names.add(basename(path));
      return;
    }
    const names = new Set([basename(path)]);
    try {
      const watcher = watch(folder, (_, name) => {
        if (name !== null && names.has(name)) this.#changed(path, name);
      });
      watcher.on('error', () => watcher.close());
      this.#folders.set(folder, { watcher, names });
    } catch {
      // A folder that cannot be watched costs the reload, nothing else.
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #changed(sibling: string, name: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onChange(`${dirname(sibling)}/${name}`), quietMs);
  }
}
