import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Debounce, in milliseconds: editors write a file in several steps. */
const debounceMs = 80;

/** Watches files; calls once for a burst of changes. */
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

  /** Adds a file. Its folder is watched, because many editors replace the file. */
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
      // Without a watcher there is no reload; everything else works.
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #changed(sibling: string, name: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onChange(`${dirname(sibling)}/${name}`), debounceMs);
  }
}
