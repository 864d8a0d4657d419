import { createSha256 } from '../../core/platform.ts';
import { systemClock } from '../../core/time.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Scope } from '../contract/store.ts';
import type { Tables } from '../memory/tables.ts';
import { checkFiles, damagedFile, fileHoldMs, filePieceLength } from '../rules/file-pieces.ts';
import type { Disk } from './disk.ts';
import { fileName, filesName, ownerFolder, uploadsFolder } from './layout.ts';
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

  constructor(directory: FilesContext) {
    this.#directory = directory;
  }

  /** Refuses a state that names a file which the store does not have, unless the state before named it already. */
  check(scope: Scope, state: SessionState, before: () => SessionState): void {
    if (sameArtifacts(before(), state)) return;
    checkFiles(state, before, (hash) => this.#find(hash, scope) !== undefined);
  }

  /** Gives files a name in the folder of a tree. `verify` reports those that are lost; they do not stop the session. */
  adopt(tree: SessionTree, hashes: readonly string[], scope: Scope): void {
    const { disk } = this.#directory;
    for (const hash of hashes) {
      const name = this.nameIn(tree, hash);
      if (disk.stat(name) !== undefined) continue;
      const from = this.#find(hash, scope);
      if (from !== undefined) disk.link(from, name);
    }
  }

  /** The name of a file in the folder of a tree. */
  nameIn({ folder }: SessionTree, hash: string): string {
    return `${folder}/${filesName}/${fileName(hash)}`;
  }

  /** The files in the folder of a tree that no snapshot names. */
  unneeded(tree: SessionTree): readonly string[] {
    const folder = `${tree.folder}/${filesName}`;
    if (this.#directory.disk.stat(folder) === undefined) return [];
    const needed = new Set([...tree.neededFiles()].map(fileName));
    const names = this.#directory.disk.list(folder).filter((name) => !needed.has(name));
    return names.map((name) => `${folder}/${name}`);
  }

  /** Removes the files of a tree that no snapshot names. */
  sweep(tree: SessionTree): void {
    for (const name of this.unneeded(tree)) this.#directory.disk.remove(name);
  }

  /** The fault of a file; `undefined`: none. Reads it in pieces. */
  problemOf(tree: SessionTree, hash: string): string | undefined {
    const sum = createSha256();
    const isThere = this.#directory.disk.open(this.nameIn(tree, hash), (file) => {
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

  /** Where a run, or a session of the same owner, has a file. */
  #find(hash: string, { owner }: Scope): string | undefined {
    const { disk } = this.#directory;
    const file = fileName(hash);
    const uploads = disk.list(uploadsFolder).map((id) => `${this.uploadsOf(id)}/${file}`);
    const isThere = (name: string): boolean => disk.stat(name) !== undefined;
    const upload = uploads.find(isThere);
    if (upload !== undefined) return upload;
    return disk
      .list(ownerFolder(owner))
      .flatMap((agent) => this.#directory.foldersIn(`${ownerFolder(owner)}/${agent}`))
      .map((folder) => `${folder}/${filesName}/${file}`)
      .find(isThere);
  }
}
