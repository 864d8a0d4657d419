import { basename, dirname } from 'node:path';
import { systemClock } from '../../core/time.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { requestTtl, type Scope } from '../contract/store.ts';
import {
  emptyTables,
  type Refresh,
  type SessionRow,
  sessionKey,
  type Tables,
} from '../memory/tables.ts';
import { format, parseFile, toLine } from './checked-line.ts';
import { attempt, type Disk } from './disk.ts';
import { FileRow } from './file-row.ts';
import { SavedFiles } from './files.ts';
import {
  ownerFolder,
  pointerFile,
  requestFile,
  requestsFolder,
  runFile,
  runsFolder,
  scopeFolder,
  sessionFolder,
  sessionsFolder,
} from './layout.ts';
import { MemoryFiles } from './memory.ts';
import { homeOf, SessionTree } from './session-tree.ts';
import { SpendFiles } from './spend.ts';

/** Bytes of journals whose states may be in memory. */
const maxLoaded = 64 * 1024 * 1024;

/**
 * The files of a store and the tables of a memory store, which have the rows of the files that were read. To `refresh` something is
 * to make its rows equal to its files; this costs one check of each file when nothing has changed. Everything happens under the lock.
 */
export class Directory implements Refresh {
  readonly disk: Disk;
  readonly tables: Tables;
  readonly trees = new Map<string, SessionTree>();
  readonly spend: SpendFiles;
  readonly memory: MemoryFiles;
  readonly files: SavedFiles;
  /** What was asked for in this hold of the lock, and may have been changed: keys of sessions, ids of snapshots, keys of requests. */
  readonly touched = {
    sessions: new Map<string, SessionRow | undefined>(),
    snapshots: new Set<string>(),
    keys: new Set<string>(),
  };
  /** Trees with states in memory and the sizes of their journals, the least recently used first. */
  readonly #loaded = new Map<SessionTree, number>();
  #loadedBytes = 0;
  /** Whether the tables are in the order of time. */
  #isSorted = true;

  constructor(disk: Disk, options: Pick<Tables, 'clock' | 'newId' | 'eventsTtl'>) {
    this.disk = disk;
    this.spend = new SpendFiles(disk);
    this.memory = new MemoryFiles(disk);
    this.tables = {
      ...options,
      ...emptyTables(),
      refresh: this,
      newRow: (row) => new FileRow(row),
      spend: this.spend,
      memory: this.memory,
      // Saving and maintenance take care of the files themselves.
      files: {
        check: (scope, state, before) => this.files.check(scope, state, before),
        problemOf: () => undefined,
        node: () => undefined,
        runEnded: () => {},
        removed: () => {},
      },
    };
    this.files = new SavedFiles(this);
  }

  /** Begins another hold of the lock. */
  begin(isHeld: boolean): void {
    this.disk.hold++;
    this.disk.isWritable = isHeld;
    for (const rows of Object.values(this.touched)) rows.clear();
  }

  /** Forgets everything that is in memory, because it may differ from the files. */
  forget(): void {
    for (const tree of this.trees.values()) tree.journal.forget();
    this.spend.forget();
    this.memory.forget();
  }

  /** The tree in a folder, as it is in memory. */
  tree(folder: string, options?: { readonly isLoaded: boolean }): SessionTree {
    const known = this.trees.get(folder);
    if (known !== undefined) return known;
    const tree = new SessionTree(folder, this, options);
    this.trees.set(folder, tree);
    return tree;
  }

  /** The tree in a folder, as it is on disk; `undefined` when there is none. */
  refreshTree(folder: string, options?: { readonly isLoaded: boolean }): SessionTree | undefined {
    const tree = this.tree(folder, options);
    if (tree.journal.refresh()) this.#isSorted = false;
    if (tree.journal.exists) return tree;
    this.forgetTree(tree);
    return undefined;
  }

  /** Takes a tree out of memory. The next access reads it again. */
  forgetTree(tree: SessionTree): void {
    tree.journal.forget();
    this.trees.delete(tree.folder);
    this.#loadedBytes -= this.#loaded.get(tree) ?? 0;
    this.#loaded.delete(tree);
  }

  /** A session is in its own folder or, being a fork, in that of the session it was forked from. */
  session(scope: Scope, sessionId: string): void {
    const key = sessionKey(scope, sessionId);
    const known = this.tables.sessions.get(key);
    const own = sessionFolder(scope, sessionId);
    const home = (known && homeOf(known)?.folder) ?? own;
    const findIn = (tree: SessionTree | undefined): SessionRow | undefined => {
      if (tree !== undefined) this.use(tree);
      return tree?.sessions.get(sessionId);
    };
    const found =
      findIn(this.refreshTree(home)) ??
      findIn(home === own ? undefined : this.refreshTree(own)) ??
      findIn(this.follow(pointerFile(scope, sessionId)));
    this.touched.sessions.set(key, found);
  }

  snapshot(scope: Scope, snapshotId: string): void {
    if (!isSnapshotId(snapshotId) || this.#refreshKnown(snapshotId)) return;
    this.refreshRuns();
    if (this.#touch(snapshotId)) return;
    const error = this.refreshScope(scopeFolder(scope));
    if (!this.#touch(snapshotId) && error !== undefined) throw error;
  }

  run(runId: string): void {
    if (!isSnapshotId(runId) || this.#refreshKnown(runId)) return;
    this.follow(runFile(runId));
    this.#touch(runId);
  }

  request(key: string): void {
    this.touched.keys.add(key);
    this.follow(requestFile(key));
    this.#sort();
    const session = this.tables.requests.get(key)?.session;
    if (session !== undefined) this.#touchSession(session);
  }

  /** Removes pointers of old requests. A receipt may be newer than its pointer, so these stay for twice as long. */
  sweepRequests(): void {
    const before = systemClock.now() - 2 * requestTtl;
    for (const name of this.pointersIn(requestsFolder)) {
      if ((this.disk.stat(name)?.changedAt ?? before) < before) this.disk.unlink(name);
    }
  }

  /** Refreshes all open runs. A damaged one does not hide the others. */
  refreshRuns(): void {
    this.sweepPointers(runsFolder);
    for (const { session } of [...this.tables.runs.values()]) {
      const tree = homeOf(session);
      if (tree !== undefined) attempt(() => this.refreshTree(tree.folder));
    }
    this.#sort();
    for (const runId of this.tables.runs.keys()) this.#touch(runId);
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
    this.#sort();
    return error;
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

  /** Removes what only an open run needs. */
  endRun(runId: string): void {
    this.disk.unlink(runFile(runId));
    this.files.endUploads(runId);
  }

  /** Writes a small file that says in which folder something is. */
  writePointer(name: string, folder: string, durable: boolean): void {
    const data = Buffer.from(`${toLine({ waymark: format, folder })}\n`);
    // A process may have died that wrote the same.
    this.disk.unlink(name);
    this.disk.append(name, data, { durable });
    if (durable) this.disk.note(dirname(name));
  }

  /** The folder that a pointer names; `undefined`: there is none, or its process died while it wrote it. */
  readPointer(name: string): string | undefined {
    const text = this.disk.readText(name);
    return text?.endsWith('\n') ? String(parseFile(text, name).folder) : undefined;
  }

  /**
   * Refreshes the tree that a pointer names, without its states. Removes a pointer that names nothing: its process died before it had
   * changed the journal, or after it.
   */
  follow(name: string): SessionTree | undefined {
    if (this.disk.stat(name) === undefined) return undefined;
    const folder = this.readPointer(name);
    const tree = folder === undefined ? folder : this.refreshTree(folder, { isLoaded: false });
    if (tree?.isNamedBy(name) === true) return tree;
    if (this.disk.isWritable) {
      this.disk.unlink(name);
      this.files.endUploads(basename(name, '.json'));
    }
    return undefined;
  }

  /** The pointers in a folder. */
  pointersIn(folder: string): readonly string[] {
    const names = this.disk.list(folder).filter((name) => name.endsWith('.json'));
    return names.map((name) => `${folder}/${name}`);
  }

  /** Follows the pointers in a folder. A damaged one does not hide the others. */
  sweepPointers(folder: string): void {
    for (const name of this.pointersIn(folder)) attempt(() => this.follow(name));
  }

  /** Refreshes what this process already knows; `false` when it does not, or when it is gone. */
  #refreshKnown(id: string): boolean {
    const { snapshots, runs } = this.tables;
    const session = (snapshots.get(id) ?? runs.get(id))?.session;
    const tree = session && homeOf(session);
    return tree !== undefined && this.refreshTree(tree.folder) !== undefined && this.#touch(id);
  }

  /** Notes that a snapshot or a run was asked for; `false` when it is not there. */
  #touch(id: string): boolean {
    const { snapshots, runs } = this.tables;
    const session = (snapshots.get(id) ?? runs.get(id))?.session;
    if (session === undefined) return false;
    this.touched.snapshots.add(id);
    this.#touchSession(session);
    return true;
  }

  #touchSession(session: SessionRow): void {
    this.touched.sessions.set(sessionKey(session.scope, session.id), session);
  }

  /** Puts what is oldest at the beginning, as the rules need it. Journals are read in any order. */
  #sort(): void {
    if (this.#isSorted) return;
    this.#isSorted = true;
    const { runs, endedAt, dead, requests } = this.tables;
    sortBy(runs, (run) => run.createdAt);
    sortBy(endedAt, (time) => time);
    sortBy(dead, ({ since }) => since);
    sortBy(requests, ({ at }) => at);
  }

  /** Notes that the states of a tree are used. */
  use(tree: SessionTree): void {
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

function sortBy<Row>(rows: Map<string, Row>, time: (row: Row) => number): void {
  const sorted = [...rows].sort(
    ([a, left], [b, right]) => time(left) - time(right) || (a < b ? -1 : 1),
  );
  rows.clear();
  for (const [key, row] of sorted) rows.set(key, row);
}
