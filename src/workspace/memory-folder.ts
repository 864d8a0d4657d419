import { createHash } from 'node:crypto';
import { raceSignal, throwIfAborted } from '../core/async/signal.ts';
import { failedPrecondition, WaymarkError } from '../core/error.ts';
import { bytesOf } from './contract/content.ts';
import type {
  ApplyOptions,
  LockOptions,
  LockOwner,
  ScanOptions,
  SkippedPath,
  TreeChange,
  TreeEntry,
  TreeFile,
  TreeFolder,
  WorkspaceFolder,
  WorkspaceLock,
  WorkspaceScan,
} from './contract/contract.ts';
import { checkRelative, checkTreePath } from './contract/paths.ts';
import {
  emptyTree,
  entryAt,
  isSameEntry,
  walkTree,
  withEntry,
  withoutEntry,
} from './contract/tree.ts';
import { busy, changedMeanwhile, inTheWay, lostLock, notLocked, wrongContent } from './errors.ts';
import { addRules, type IgnoreRules, noRules } from './ignore-rules.ts';

const workspace = 'memory';

interface Held {
  readonly owner: LockOwner;
  readonly lost: AbortController;
  count: number;
  /** Resolves when it is free. */
  readonly freed: PromiseWithResolvers<void>;
}

/** A folder in memory. Its tree is replaced as a whole, so that each change is atomic. */
export class MemoryFolder implements WorkspaceFolder {
  readonly id: string;
  /** With ignored files. */
  #tree: TreeFolder;
  #visible: { readonly of: TreeFolder; readonly tree: TreeFolder } | undefined;
  readonly #contents: Map<string, Uint8Array>;
  #held: Held | undefined;

  constructor(
    id: string,
    {
      tree,
      contents,
    }: { readonly tree: TreeFolder; readonly contents: ReadonlyMap<string, Uint8Array> },
  ) {
    this.id = id;
    this.#tree = tree;
    this.#contents = new Map(contents);
  }

  /** Replaces the whole tree, whose contents are stored. */
  replace(tree: TreeFolder): void {
    this.#tree = tree;
  }

  /** Stores the content of a file. */
  async store(
    pieces: AsyncIterable<Uint8Array>,
    { file, path }: { readonly file: TreeFile; readonly path: string },
  ): Promise<void> {
    if (this.#contents.has(file.hash)) return;
    const content = await bytesOf(pieces);
    const hash = createHash('sha256').update(content).digest('hex');
    if (hash !== file.hash) throw wrongContent(path, workspace);
    this.#contents.set(hash, content);
  }

  async scan({ signal, include = [] }: ScanOptions = {}): Promise<WorkspaceScan> {
    throwIfAborted(signal);
    for (const path of include) checkTreePath(path);
    if (this.#visible?.of !== this.#tree) {
      this.#visible = { of: this.#tree, tree: this.#withoutIgnored(this.#tree, '', noRules) };
    }
    let { tree } = this.#visible;
    for (const path of include) {
      const found = this.#inTheWay(path);
      if (found !== undefined && entryAt(tree, found) === undefined) {
        tree = withEntry(tree, found, entryAt(this.#tree, found) ?? emptyTree);
      }
    }
    const entries = [...walkTree(tree)].map(([, entry]) => entry);
    const files = entries.filter((entry) => entry.type === 'file');
    const count = entries.filter(({ type }) => type !== 'folder').length;
    return { tree, skipped: [], count, size: files.reduce((sum, { size }) => sum + size, 0) };
  }

  async *read(path: string, { hash }: { readonly hash?: string } = {}): AsyncGenerator<Uint8Array> {
    checkRelative(path);
    const entry = entryAt(this.#tree, path);
    const content = entry?.type === 'file' ? this.#contents.get(entry.hash) : undefined;
    if (entry?.type !== 'file' || content === undefined) {
      const why = entry === undefined ? 'There is no file' : 'No regular file is';
      const status = entry === undefined ? 'NOT_FOUND' : 'FAILED_PRECONDITION';
      throw new WaymarkError(status, `${why} ${JSON.stringify(path)} in workspace "${workspace}".`);
    }
    if (hash !== undefined && entry.hash !== hash) throw changedMeanwhile(path, workspace);
    yield content.slice();
  }

  async apply(
    changes: readonly TreeChange[],
    { content, signal }: ApplyOptions,
  ): Promise<readonly SkippedPath[]> {
    if (this.#held === undefined) throw notLocked(workspace);
    for (const { path, after } of changes) {
      checkTreePath(path);
      if (after?.type === 'file' && !this.#contents.has(after.hash)) {
        await this.store(content(after, path), { file: after, path });
      }
    }
    throwIfAborted(signal);
    // From here on nothing else runs.
    this.#tree = changed(this.#tree, changes);
    return [];
  }

  async lock(owner: LockOwner, { wait = false, signal }: LockOptions = {}): Promise<WorkspaceLock> {
    for (;;) {
      throwIfAborted(signal);
      const held = this.#held;
      if (held === undefined) return this.#share(this.#hold(owner));
      const { runId, attempt = 0 } = held.owner;
      if (runId === owner.runId && attempt === (owner.attempt ?? 0)) return this.#share(held);
      if (runId === owner.runId && attempt < (owner.attempt ?? 0)) {
        held.lost.abort(lostLock(workspace));
        held.freed.resolve();
        return this.#share(this.#hold(owner));
      }
      if (!wait || runId === owner.runId) throw busy(runId, workspace);
      await raceSignal(held.freed.promise, signal);
    }
  }

  #hold(owner: LockOwner): Held {
    const freed = Promise.withResolvers<void>();
    this.#held = { owner, lost: new AbortController(), count: 0, freed };
    return this.#held;
  }

  #share(held: Held): WorkspaceLock {
    held.count++;
    let isReleased = false;
    return {
      lost: held.lost.signal,
      release: async () => {
        if (isReleased) return;
        isReleased = true;
        if (--held.count > 0) return;
        if (this.#held === held) this.#held = undefined;
        held.freed.resolve();
      },
    };
  }

  #withoutIgnored(folder: TreeFolder, prefix: string, outer: IgnoreRules): TreeFolder {
    const file = folder.entries.get('.gitignore');
    const content = file?.type === 'file' ? this.#contents.get(file.hash) : undefined;
    const text = new TextDecoder().decode(content);
    const rules = content ? addRules(outer, { prefix, text, last: undefined }) : outer;
    const kept: [string, TreeEntry][] = [];
    for (const [name, entry] of folder.entries) {
      if (rules.excludes(prefix + name, entry.type === 'folder')) continue;
      const shown =
        entry.type === 'folder' ? this.#withoutIgnored(entry, `${prefix}${name}/`, rules) : entry;
      const isHidden = shown !== entry && shown.type === 'folder' && shown.entries.size === 0;
      if (!isHidden) kept.push([name, shown]);
    }
    const isSame =
      kept.length === folder.entries.size &&
      kept.every(([name, entry]) => folder.entries.get(name) === entry);
    return isSame ? folder : { type: 'folder', entries: new Map(kept) };
  }

  /** The path, or the file or link above it; `undefined` if there is neither. */
  #inTheWay(path: string): string | undefined {
    const names = path.split('/');
    for (let depth = 1; depth <= names.length; depth++) {
      const above = names.slice(0, depth).join('/');
      const entry = entryAt(this.#tree, above);
      if (entry === undefined) return undefined;
      if (entry.type !== 'folder' || depth === names.length) return above;
    }
    return undefined;
  }
}

/** The tree after all changes: what is in a folder is removed before the folder, and added after it. */
function changed(tree: TreeFolder, changes: readonly TreeChange[]): TreeFolder {
  const sorted = changes.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  for (const { path, before, after } of sorted) {
    const found = entryAt(tree, path);
    if (found?.type === 'folder' && after?.type === 'folder') continue;
    if (before === null && found !== undefined) throw inTheWay(path, workspace);
    const isGone = found === undefined && after === undefined;
    if (before && !isGone && !isSameEntry(found, before)) throw changedMeanwhile(path, workspace);
  }
  let next = tree;
  for (const { path, after } of sorted.toReversed()) {
    const found = entryAt(next, path);
    if (found === undefined || (found.type === 'folder' && after?.type === 'folder')) continue;
    const hasContent = found.type === 'folder' && found.entries.size > 0;
    if (hasContent && after !== undefined) throw inTheWay(path, workspace);
    if (!hasContent) next = withoutEntry(next, path);
  }
  for (const { path, before, after } of sorted) {
    if (after === undefined) continue;
    const above = blockedBy(next, path);
    if (above !== undefined) {
      throw failedPrecondition(
        `${JSON.stringify(path)} cannot be changed in workspace "${workspace}": ${JSON.stringify(above)} is no folder.`,
      );
    }
    const found = entryAt(tree, path);
    const keeps = before === undefined && found?.type === 'file' && found.isExecutable;
    if (after.type === 'file' && keeps)
      next = withEntry(next, path, { ...after, isExecutable: true });
    else if (after.type !== 'folder') next = withEntry(next, path, after);
    else if (entryAt(next, path) === undefined) next = withEntry(next, path, emptyTree);
  }
  return next;
}

function blockedBy(tree: TreeFolder, path: string): string | undefined {
  const names = path.split('/').slice(0, -1);
  return names
    .map((_, at) => names.slice(0, at + 1).join('/'))
    .find((above) => (entryAt(tree, above)?.type ?? 'folder') !== 'folder');
}
