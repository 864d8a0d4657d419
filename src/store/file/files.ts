import { createSha256 } from '../../core/platform.ts';
import { systemClock } from '../../core/time.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionState } from '../../session/session-state.ts';
import { namesOfNode } from '../../session/tree-node.ts';
import type { Scope } from '../contract/store.ts';
import type { FileTable, Tables } from '../memory/tables.ts';
import { checkFiles, damagedFile, fileHoldMs, filePieceLength } from '../rules/file-pieces.ts';
import type { Disk } from './disk.ts';
import { fileName, filesName, nodeName, ownerFolder, treesName, uploadsFolder } from './layout.ts';
import type { SessionTree } from './session-tree.ts';
import { sameArtifacts } from './state-delta.ts';

/** The part of a directory that saved files need. */
interface FilesContext {
  readonly disk: Disk;
  readonly tables: Tables;
  foldersIn(scope: string): readonly string[];
  refreshRuns(): void;
}

/**
 * Saved files. A run, or an import, first puts them into a folder of uploads. When a snapshot names one, it gets a second name in the
 * folder of its tree.
 */
export class SavedFiles {
  readonly #directory: FilesContext;
  readonly #unswept = new WeakSet<SessionTree>();

  constructor(directory: FilesContext) {
    this.#directory = directory;
  }

  /** Refuses a state that names a file which the store does not have, unless the state before named it already. */
  check(scope: Scope, state: SessionState, before: () => SessionState): void {
    if (sameArtifacts(before(), state)) return;
    const isStored = (hash: string): boolean =>
      this.#find(fileName(hash), filesName, scope) !== undefined ||
      this.#find(nodeName(hash), treesName, scope) !== undefined;
    checkFiles(state, before, isStored);
  }

  /** Gives files and trees a name in the folder of a session. `verify` reports those that are lost; they do not stop the session. */
  adopt(tree: SessionTree, artifacts: readonly Artifact[], scope: Scope): void {
    const { disk } = this.#directory;
    for (const hash of fileHashesIn(artifacts)) {
      const name = this.nameIn(tree, hash);
      if (disk.stat(name) !== undefined) continue;
      const from = this.#find(fileName(hash), filesName, scope);
      if (from !== undefined) disk.link(from, name);
    }
    this.bring(treesOf(tree), treeHashesIn(artifacts).map(nodeName), scope);
  }

  /**
   * Gives nodes and contents of trees, with all that nodes name, a name in a folder. Returns the names of those that the store does not
   * have. A node comes after what it names, so that one that is there is whole.
   */
  bring(folder: string, names: readonly string[], scope: Scope): readonly string[] {
    const { disk } = this.#directory;
    const missing: string[] = [];
    for (const name of names) {
      const to = `${folder}/${name}`;
      if (disk.stat(to) !== undefined) continue;
      const from = this.#find(name, treesName, scope);
      if (from === undefined) {
        missing.push(name);
        continue;
      }
      if (isNode(name)) missing.push(...this.bring(folder, namesIn(this.#read(from)), scope));
      disk.link(from, to);
    }
    return missing;
  }

  /** Where the folder of a session, or a run, has a node or a content of a tree. */
  inTrees(tree: SessionTree | undefined, runId: string | undefined, name: string): string[] {
    const folders = [
      tree && treesOf(tree),
      runId === undefined ? undefined : this.uploadsOf(runId),
    ];
    return folders.flatMap((folder) => (folder === undefined ? [] : `${folder}/${name}`));
  }

  /** A node that a session or a run has; `undefined` if there is none. */
  readTree(
    tree: SessionTree | undefined,
    runId: string | undefined,
    hash: string,
  ): Uint8Array | undefined {
    for (const name of this.inTrees(tree, runId, nodeName(hash))) {
      const found = this.#read(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** A node or a content in memory; `undefined` if there is none. */
  #read(name: string): Uint8Array | undefined {
    return this.#directory.disk.open(name, (file) => file.read(0, file.size()));
  }

  /** The name of a file in the folder of a tree. */
  nameIn({ folder }: SessionTree, hash: string): string {
    return `${folder}/${filesName}/${fileName(hash)}`;
  }

  /** The files in the folder of a session that no snapshot names. An open run may need those of trees that no snapshot names yet. */
  unneeded(tree: SessionTree): readonly string[] {
    const files = this.#besides(`${tree.folder}/${filesName}`, () =>
      [...tree.needed('files')].map(fileName),
    );
    if (hasOpenRun(tree)) return files;
    return [...files, ...this.#besides(treesOf(tree), () => this.#treeNames(tree))];
  }

  #besides(folder: string, needed: () => Iterable<string>): readonly string[] {
    if (this.#directory.disk.stat(folder) === undefined) return [];
    const kept = new Set(needed());
    const names = this.#directory.disk.list(folder).filter((name) => !kept.has(name));
    return names.map((name) => `${folder}/${name}`);
  }

  /** The names of all that the trees of a session's snapshots need. */
  #treeNames(tree: SessionTree): ReadonlySet<string> {
    const names = new Set<string>();
    // A damaged node throws: what it names must not be removed.
    const add = (name: string): void => {
      if (names.has(name)) return;
      names.add(name);
      if (isNode(name)) namesIn(this.#read(`${treesOf(tree)}/${name}`)).forEach(add);
    };
    for (const hash of tree.needed('trees')) add(nodeName(hash));
    return names;
  }

  /** How `verify` reads the files of a session. */
  reading(tree: SessionTree): Pick<FileTable, 'problemOf' | 'node'> {
    return {
      problemOf: (hash) => this.problemOf(tree, hash),
      node: (hash) => this.#read(`${treesOf(tree)}/${nodeName(hash)}`),
    };
  }

  /** Removes the files of a tree that no snapshot names. */
  sweep(tree: SessionTree): void {
    for (const name of this.unneeded(tree)) this.#directory.disk.remove(name);
    if (hasOpenRun(tree)) this.#unswept.add(tree);
    else this.#unswept.delete(tree);
  }

  /** A run has ended for which a sweep has left something. */
  sweepRest(tree: SessionTree): void {
    if (this.#unswept.has(tree)) this.sweep(tree);
  }

  /** The fault of a file; `undefined`: none. Reads it in pieces. */
  problemOf(tree: SessionTree, hash: string): string | undefined {
    const sum = createSha256();
    const { disk } = this.#directory;
    const own = this.nameIn(tree, hash);
    const name = disk.stat(own) === undefined ? `${treesOf(tree)}/${fileName(hash)}` : own;
    const isThere = disk.open(name, (file) => {
      const size = file.size();
      for (let at = 0; at < size; at += filePieceLength) {
        sum.update(file.read(at, Math.min(filePieceLength, size - at)));
      }
      return true;
    });
    if (isThere === undefined) return damagedFile(hash, 'it is missing').message;
    if (sum.hex() === hash) return undefined;
    return damagedFile(hash, 'its content does not fit its name').message;
  }

  /** The folder with the uploads of a run or an import. */
  uploadsOf(id: string): string {
    return `${uploadsFolder}/${id}`;
  }

  /** Removes the uploads of a run that has ended. An aborted one may still attach its partial state. */
  endUploads(runId: string): void {
    const { disk, tables } = this.#directory;
    const folder = this.uploadsOf(runId);
    if (disk.stat(folder) === undefined) return;
    if (tables.snapshots.get(runId)?.partialFrom === undefined) disk.remove(folder);
  }

  /** Removes the uploads of processes that died. */
  sweepUploads(): void {
    const { disk, tables } = this.#directory;
    const ids = disk.list(uploadsFolder);
    if (ids.length > 0) this.#directory.refreshRuns();
    for (const id of ids) {
      const { changedAt = 0 } = disk.stat(this.uploadsOf(id)) ?? {};
      const run = tables.runs.get(id);
      const isAlive =
        run !== undefined && run.heartbeatAt + run.ttl + fileHoldMs > tables.clock.now();
      if (!isAlive && systemClock.now() - changedAt > fileHoldMs) disk.remove(this.uploadsOf(id));
    }
  }

  /** Where a run, or a session of the same owner, has a file under this name. */
  #find(
    file: string,
    inFolder: typeof filesName | typeof treesName,
    { owner }: Scope,
  ): string | undefined {
    const { disk } = this.#directory;
    const uploads = disk.list(uploadsFolder).map((id) => `${this.uploadsOf(id)}/${file}`);
    const isThere = (name: string): boolean => disk.stat(name) !== undefined;
    const upload = uploads.find(isThere);
    if (upload !== undefined) return upload;
    return disk
      .list(ownerFolder(owner))
      .flatMap((agent) => this.#directory.foldersIn(`${ownerFolder(owner)}/${agent}`))
      .map((folder) => `${folder}/${inFolder}/${file}`)
      .find(isThere);
  }
}

function treesOf({ folder }: SessionTree): string {
  return `${folder}/${treesName}`;
}

function hasOpenRun({ sessions }: SessionTree): boolean {
  return [...sessions.values()].some(({ run }) => run !== undefined);
}

function isNode(name: string): boolean {
  return name === nodeName(hashIn(name));
}

/** The hash in the name of a file or a node. */
export function hashIn(name: string): string {
  return name.slice(0, 64);
}

/** The names of what a node names; none for a node that is lost, which `verify` reports. */
export function namesIn(bytes: Uint8Array | undefined): readonly string[] {
  if (bytes === undefined) return [];
  const { files, nodes } = namesOfNode(bytes);
  return [...files.map(fileName), ...nodes.map(nodeName)];
}
