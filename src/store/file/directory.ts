import { isSnapshotId } from '../../protocol/ids.ts';
import type { Lookup, Scope } from '../contract/store.ts';
import { type RunRow, type SessionRow, sessionKey, type Tables } from '../memory/tables.ts';
import { format, parseFile, toLine } from './checked-line.ts';
import { attempt, type Disk } from './disk.ts';
import { EventFiles } from './events.ts';
import { SavedFiles } from './files.ts';
import {
  journalName,
  ownerFolder,
  pointerFile,
  runFile,
  runsFolder,
  scopeFolder,
  sessionFolder,
  sessionsFolder,
} from './layout.ts';
import { RequestFiles } from './requests.ts';
import { RunFile } from './run-file.ts';
import { homeOf, SessionTree, type TreeContext } from './session-tree.ts';
import type { SpendFiles } from './spend.ts';

/** Bytes of journals whose states may be in memory. */
const maxLoaded = 64 * 1024 * 1024;

/** A session and the tree that it belongs to. */
export interface Home {
  readonly tree: SessionTree;
  readonly session: SessionRow;
}

/** The session and the folder that a pointer names. */
interface Pointer {
  readonly session: string;
  readonly folder: string;
}

/**
 * The files of a store and the tables of a memory store, which have the rows of the files that were read. To `refresh` something is
 * to make its rows equal to its files; this costs one check of each file when nothing has changed. Everything happens under the lock.
 */
export class Directory {
  readonly disk: Disk;
  readonly tables: Tables;
  readonly trees = new Map<string, SessionTree>();
  readonly events: EventFiles;
  readonly requests: RequestFiles;
  readonly spend: SpendFiles;
  readonly files: SavedFiles;
  /** Sessions that were refreshed with their runs in this hold of the lock. */
  readonly used = new Set<SessionRow>();
  /** Sessions that were added to the tables in this hold of the lock. */
  readonly added = new Set<SessionRow>();
  /** Sessions that were deleted from the tables in this hold of the lock, in that order. */
  readonly gone = new Set<SessionRow>();
  readonly #runFiles = new Map<string, RunFile>();
  /** Trees with states in memory and the sizes of their journals, the least recently used first. */
  readonly #loaded = new Map<SessionTree, number>();
  #loadedBytes = 0;
  readonly #context: TreeContext;

  constructor(disk: Disk, tables: Tables, spend: SpendFiles) {
    this.disk = disk;
    this.tables = tables;
    this.spend = spend;
    this.#context = {
      disk,
      tables,
      onUse: (tree) => this.#use(tree),
      onForget: (session) => {
        for (const set of [this.used, this.added, this.gone]) set.delete(session);
        this.#runFiles.get(runFile(session.scope, session.id))?.forget();
      },
    };
    this.files = new SavedFiles(this);
    this.events = new EventFiles(disk, tables, this.find);
    this.requests = new RequestFiles(disk, tables, (scope, id) => this.refreshSession(scope, id));
  }

  /** Begins another hold of the lock. */
  begin(isHeld: boolean): void {
    this.disk.hold++;
    this.disk.isWritable = isHeld;
    for (const set of [this.used, this.added, this.gone]) set.clear();
  }

  /** Forgets everything that is in memory, because it may differ from the files. */
  forget(): void {
    for (const file of this.#runFiles.values()) file.forget();
    for (const tree of this.trees.values()) tree.forget();
    this.events.forget();
    this.spend.forget();
  }

  /** The tree in a folder, as it is in memory. */
  tree(folder: string, options?: { readonly isLoaded: boolean }): SessionTree {
    const known = this.trees.get(folder);
    if (known !== undefined) return known;
    const tree = new SessionTree(folder, this.#context, options);
    this.trees.set(folder, tree);
    return tree;
  }

  /** The tree in a folder, as it is on disk; `undefined` when there is none. */
  refreshTree(folder: string, options?: { readonly isLoaded: boolean }): SessionTree | undefined {
    const tree = this.tree(folder, options);
    tree.refresh();
    if (tree.journal.exists) return tree;
    this.forgetTree(tree);
    return undefined;
  }

  /** Takes a tree out of memory. The next access reads it again. */
  forgetTree(tree: SessionTree): void {
    tree.forget();
    this.trees.delete(tree.folder);
    this.#loadedBytes -= this.#loaded.get(tree) ?? 0;
    this.#loaded.delete(tree);
  }

  /** Refreshes a session and its run. */
  refreshSession(scope: Scope, sessionId: string): Home | undefined {
    const home = this.find(scope, sessionId);
    if (home === undefined) return undefined;
    this.runFile(home.session).refresh();
    this.used.add(home.session);
    return home;
  }

  /** Refreshes the session of a snapshot, or of a run by its reserved id. */
  refreshSnapshot(scope: Scope, snapshotId: string): void {
    if (!isSnapshotId(snapshotId) || this.#refreshKnown(snapshotId)) return;
    this.refreshRuns();
    if (this.tables.runs.has(snapshotId)) return;
    const error = this.refreshScope(scopeFolder(scope));
    if (error !== undefined && !this.tables.snapshots.has(snapshotId)) throw error;
    this.#refreshKnown(snapshotId);
  }

  refreshLookup(scope: Scope, lookup: Lookup): void {
    if ('snapshotId' in lookup) this.refreshSnapshot(scope, lookup.snapshotId);
    else this.refreshSession(scope, lookup.sessionId);
  }

  /** Refreshes a run and its session. */
  refreshRun(runId: string): void {
    if (!this.#refreshKnown(runId)) this.refreshRuns();
  }

  /** Refreshes all open runs. A damaged one does not hide the others. */
  refreshRuns(): void {
    const names = new Set(this.disk.list(runsFolder).map((name) => `${runsFolder}/${name}`));
    for (const [name, file] of this.#runFiles) {
      if (file.run !== undefined || names.has(name)) names.add(name);
      else this.#runFiles.delete(name);
    }
    for (const name of names) {
      attempt(() => {
        const file = this.#runFileAt(name);
        if (file.run !== undefined) this.find(file.run.session.scope, file.run.session.id);
        file.refresh();
        if (file.run !== undefined) this.used.add(file.run.session);
      });
    }
    sortRuns(this.tables.runs);
  }

  /** Refreshes all trees of a scope, without their states. A damaged one does not hide the others; returns the first error. */
  refreshScope(folder: string): unknown {
    const known = [...this.trees.keys()].filter((each) => each.startsWith(`${folder}/`));
    let error: unknown;
    for (const each of new Set([...known, ...this.foldersIn(folder)])) {
      try {
        this.refreshTree(each, { isLoaded: false });
      } catch (cause) {
        error ??= cause;
      }
    }
    return error;
  }

  /** Refreshes all sessions of some scopes and all open runs. */
  refreshScopes(folders: readonly string[]): void {
    for (const folder of folders) this.refreshScope(folder);
    this.refreshRuns();
  }

  /** The folders of trees in the folder of a scope. */
  foldersIn(scope: string): readonly string[] {
    // Pointers have a dot in their names, folders never.
    const names = this.disk.list(scope).filter((name) => !name.includes('.'));
    return names.map((name) => `${scope}/${name}`);
  }

  /** The folders of all scopes, or of those of an owner (`null`: sessions without one). */
  scopeFolders(owner?: string | null): readonly string[] {
    const root = owner === undefined ? sessionsFolder : ownerFolder(owner ?? undefined);
    const owners =
      owner === undefined ? this.disk.list(root).map((name) => `${root}/${name}`) : [root];
    const found = owners.flatMap((each) => this.disk.list(each).map((name) => `${each}/${name}`));
    // Also those of sessions that are in memory and perhaps no longer on disk.
    const known = [...this.trees.keys()].filter((folder) => folder.startsWith(`${root}/`));
    const scopes = known.map((folder) => folder.slice(0, folder.lastIndexOf('/')));
    return [...new Set([...found, ...scopes])];
  }

  /** Refreshes a run and its events. */
  refreshEvents(runId: string): void {
    if (isSnapshotId(runId)) this.refreshRun(runId);
    this.events.refresh(runId);
  }

  /** Refreshes runs and snapshots that have listeners, and their events. */
  refreshListened(ids: readonly string[]): void {
    this.refreshRuns();
    for (const id of ids) if (!this.tables.runs.has(id)) this.#refreshKnown(id);
    for (const id of ids) this.events.refresh(id);
  }

  /** The file of the run that works on a session. */
  runFile(session: Pick<SessionRow, 'scope' | 'id'>): RunFile {
    return this.#runFileAt(runFile(session.scope, session.id));
  }

  #runFileAt(name: string): RunFile {
    const known = this.#runFiles.get(name);
    if (known !== undefined) return known;
    const file = new RunFile(this.disk, this.tables, name, this.find);
    this.#runFiles.set(name, file);
    return file;
  }

  removeRunFile(file: RunFile): void {
    file.journal.remove();
    this.#runFiles.delete(file.journal.name);
  }

  /** Says in which folder a fork is. */
  writePointer({ scope, id }: SessionRow, { folder }: SessionTree): void {
    const base = folder.slice(folder.lastIndexOf('/') + 1);
    const line = toLine({ waymark: format, session: id, folder: base });
    this.disk.replace(pointerFile(scope, id), [`${line}\n`]);
  }

  /** The pointers in the folder of a scope. */
  pointersIn(scope: string): readonly string[] {
    const names = this.disk.list(scope).filter((name) => name.endsWith('.json'));
    return names.map((name) => `${scope}/${name}`);
  }

  /** Whether a pointer names a tree that has its session. */
  isPointerUsed(name: string): boolean {
    const { session, folder } = this.readPointer(name) ?? {};
    if (session === undefined) return false;
    const scope = name.slice(0, name.lastIndexOf('/'));
    const tree = this.refreshTree(`${scope}/${folder}`, { isLoaded: false });
    return tree?.sessions.has(session) === true;
  }

  /** The session and the folder that a pointer names. */
  readPointer(name: string): Pointer | undefined {
    const text = this.disk.readText(name);
    return text === undefined ? undefined : (parseFile(text, name) as unknown as Pointer);
  }

  /** Refreshes a session, but not its run. It is in its own folder or, being a fork, in that of the session it was forked from. */
  readonly find = (scope: Scope, sessionId: string): Home | undefined => {
    const known = this.tables.sessions.get(sessionKey(scope, sessionId));
    const home = known && homeOf(known)?.folder;
    const own = sessionFolder(scope, sessionId);
    for (const folder of new Set([home ?? own, own])) {
      const found = this.#findIn(folder, sessionId);
      if (found !== undefined) return found;
    }
    const name = pointerFile(scope, sessionId);
    const named = this.readPointer(name);
    if (named === undefined) return undefined;
    const found = this.#findIn(`${scopeFolder(scope)}/${named.folder}`, sessionId);
    // A process died after it had written the pointer, or after it had deleted the session.
    if (found === undefined && this.disk.isWritable) this.disk.unlink(name);
    return found;
  };

  #findIn(folder: string, sessionId: string): Home | undefined {
    const isNew = !this.trees.has(folder);
    if (isNew && this.disk.stat(`${folder}/${journalName}`) === undefined) return undefined;
    const tree = this.refreshTree(folder);
    const session = tree?.sessions.get(sessionId);
    if (tree === undefined || session === undefined) return undefined;
    if (tree.isLoaded) this.#use(tree);
    return { tree, session };
  }

  /** Refreshes what this process already knows; `false` when it does not, or when it is gone. */
  #refreshKnown(id: string): boolean {
    const { snapshots, runs } = this.tables;
    const session = (snapshots.get(id) ?? runs.get(id))?.session;
    if (session === undefined) return false;
    this.refreshSession(session.scope, session.id);
    return snapshots.has(id) || runs.has(id);
  }

  #use(tree: SessionTree): void {
    const bytes = tree.journal.size;
    this.#loadedBytes += bytes - (this.#loaded.get(tree) ?? 0);
    this.#loaded.delete(tree);
    this.#loaded.set(tree, bytes);
    for (const [other, size] of this.#loaded) {
      if (this.#loadedBytes <= maxLoaded || other === tree) break;
      other.unload();
      this.#loaded.delete(other);
      this.#loadedBytes -= size;
    }
  }
}

// Lists start with the oldest run, which is the order of the claims but not of the file names.
function sortRuns(runs: Map<string, RunRow>): void {
  const sorted = [...runs.values()].sort(
    (a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1),
  );
  runs.clear();
  for (const run of sorted) runs.set(run.id, run);
}
