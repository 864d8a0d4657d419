import { dirname } from 'node:path';
import { isWaymarkError } from '../../../core/error.ts';
import { privateField } from '../../../core/private-field.ts';
import { fileHashesIn } from '../../../protocol/file-part.ts';
import type { SessionState } from '../../../session/session-state.ts';
import type { Lookup, Scope } from '../../contract/store.ts';
import type { RunRow, SessionRow, Tables } from '../../memory/tables.ts';
import { missingFile } from '../../rules/file-pieces.ts';
import { isSnapshotId } from '../../rules/ids.ts';
import { DeadFiles } from '../runs/dead-files.ts';
import { EventFiles } from '../runs/event-files.ts';
import { RequestFiles } from '../runs/request-files.ts';
import { RunFile } from '../runs/run-file.ts';
import type { Home } from '../runs/run-row.ts';
import { UploadFiles } from '../runs/upload-files.ts';
import { readPointer } from '../sessions/fork-pointer.ts';
import { clearedSize } from '../sessions/journal.ts';
import { LoadedLru } from '../sessions/loaded-lru.ts';
import { SessionTree, type SessionTreeContext } from '../sessions/session-tree.ts';
import { sameArtifacts } from '../sessions/state-delta.ts';
import type { SpendFiles } from '../spend-files.ts';
import type { Disk } from './disk.ts';
import {
  artifactsName,
  dataName,
  runFile,
  runsFolder,
  safeName,
  scopeFolder,
  uploadsFolder,
} from './layout.ts';

/** The names of the files of runs, which take a hash to make. */
const runNames = privateField<Pick<SessionRow, 'scope' | 'id'>, string>();

/** How many files of runs are kept for their sessions' next ones. */
const maxResting = 64;

/**
 * The tables of a memory store, kept in step with files. To `reach` something is to make the tables say of it what the files
 * say; it costs one look at each file when nothing has changed. Everything happens under the lock.
 */
export class DirectoryCache implements SessionTreeContext {
  readonly disk: Disk;
  readonly tables: Tables;
  readonly trees = new Map<string, SessionTree>();
  readonly use = (tree: SessionTree): void => this.#warm.use(tree);
  readonly events: EventFiles;
  readonly dead: DeadFiles;
  readonly requests: RequestFiles;
  readonly spend: SpendFiles;
  readonly uploads: UploadFiles;
  readonly #runFiles = new Map<string, RunFile>();
  /** Those that wait for the next run of their session, the one that was used last at the end. */
  readonly #resting = new Set<RunFile>();
  readonly #pointers = new Map<string, string>();
  readonly #warm = new LoadedLru();

  constructor(disk: Disk, tables: Tables, spend: SpendFiles) {
    this.disk = disk;
    this.tables = tables;
    this.spend = spend;
    this.uploads = new UploadFiles(disk, tables);
    this.events = new EventFiles(disk, tables, this.#find);
    this.dead = new DeadFiles(disk, tables, this.#find);
    this.requests = new RequestFiles(disk, tables, (scope, id) => this.refreshSession(scope, id));
  }

  /** Forgets everything that is in memory, because it may differ from the files. */
  forget(): void {
    for (const { journal } of this.trees.values()) journal.forget();
    for (const { journal } of this.#runFiles.values()) journal.forget();
    this.events.forget();
  }

  /** The family in a folder, as it is in memory. */
  tree(folder: string): SessionTree {
    const known = this.trees.get(folder);
    if (known !== undefined) return known;
    const tree = new SessionTree(folder, this);
    this.trees.set(folder, tree);
    return tree;
  }

  /** The family in a folder, as it is on disk; `undefined` when there is none. */
  refreshFamily(folder: string): SessionTree | undefined {
    const tree = this.tree(folder);
    tree.refresh();
    if (tree.journal.exists) return tree;
    this.trees.delete(folder);
    return undefined;
  }

  /** A session and the run that works on it. */
  refreshSession(scope: Scope, sessionId: string): Home | undefined {
    const home = this.#find(scope, sessionId);
    if (home !== undefined) this.runFile(home.session).refresh();
    return home;
  }

  /** The session of a snapshot or of a run under its reserved id. */
  refreshSnapshot(scope: Scope, snapshotId: string): void {
    if (!isSnapshotId(snapshotId) || this.#refreshKnown(snapshotId)) return;
    this.refreshRuns();
    if (this.tables.runs.has(snapshotId)) return;
    const { error } = this.refreshScope(scopeFolder(scope));
    if (error !== undefined && !this.tables.snapshots.has(snapshotId)) throw error;
  }

  refreshLookup(scope: Scope, lookup: Lookup): void {
    if ('snapshotId' in lookup) this.refreshSnapshot(scope, lookup.snapshotId);
    else this.refreshSession(scope, lookup.sessionId);
  }

  /** A run and its session, which is gone when the run is over and unknown here. */
  refreshRun(runId: string): void {
    if (!this.#refreshKnown(runId)) this.refreshRuns();
  }

  /** All open runs. One that cannot be read does not hide the others. */
  refreshRuns(): void {
    const names = new Set(this.disk.list(runsFolder).map((name) => `${runsFolder}/${name}`));
    for (const [name, file] of this.#runFiles) {
      if (file.journal.exists) names.add(name);
      else if (!names.has(name)) {
        this.#runFiles.delete(name);
        this.#resting.delete(file);
      }
    }
    for (const name of names) attempt(() => this.#refreshRunFile(name));
    sortRuns(this.tables.runs);
  }

  #refreshRunFile(name: string): void {
    const file = this.#runFileAt(name);
    if (file.run !== undefined) this.#find(file.run.session.scope, file.run.session.id);
    file.refresh();
  }

  /**
   * All sessions in the folder of a scope, without their states. One that cannot be read does not hide the others; the
   * error says what is wrong with it.
   */
  refreshScope(folder: string): {
    readonly trees: readonly SessionTree[];
    readonly error?: unknown;
  } {
    const known = [...this.trees.keys()].filter((each) => each.startsWith(`${folder}/`));
    const trees: SessionTree[] = [];
    let error: unknown;
    for (const each of new Set([...known, ...this.foldersIn(folder)])) {
      try {
        const tree = this.refreshCold(each);
        if (tree !== undefined) trees.push(tree);
      } catch (cause) {
        error ??= cause;
      }
    }
    return error === undefined ? { trees } : { trees, error };
  }

  /** A family whose states have not been read yet. */
  refreshCold(folder: string): SessionTree | undefined {
    if (!this.trees.has(folder)) this.tree(folder).states.cool();
    return this.refreshFamily(folder);
  }

  /** The folders of families in the folder of a scope. */
  foldersIn(folder: string): readonly string[] {
    // Pointers have a dot in their names, folders never.
    const names = this.disk.list(folder).filter((name) => !name.includes('.'));
    return names.map((name) => `${folder}/${name}`);
  }

  /** Refuses a state that names a file which the store does not have, unless the state before named it already. */
  checkFiles(scope: Scope, state: SessionState, before: () => SessionState): void {
    if (sameArtifacts(before(), state)) return;
    const family = `${scopeFolder(scope)}/any`;
    const isMissing = (hash: string): boolean =>
      this.findFile(dataName(hash), family) === undefined;
    const missing = fileHashesIn(state.artifacts).filter(isMissing);
    if (missing.length === 0) return;
    const known = fileHashesIn(before().artifacts);
    for (const hash of missing) if (!known.includes(hash)) throw missingFile(hash);
  }

  /** The events of a run, and whether it is over. */
  refreshEvents(runId: string): void {
    if (isSnapshotId(runId)) this.refreshRun(runId);
    this.events.refresh(runId);
  }

  /** The events of all runs, and those that were given up. */
  refreshAllEvents(): void {
    attempt(() => this.dead.refresh());
    for (const runId of this.events.runIds()) attempt(() => this.refreshEvents(runId));
  }

  /** Removes the events and dead letters of what is gone, after {@link DirectoryCache.reachAllEvents}. */
  sweep(): void {
    this.events.sweep();
    this.dead.sweep();
    this.sweepUploads();
  }

  /** Removes files of runs that are over. */
  sweepUploads(): void {
    if (this.disk.list(uploadsFolder).length === 0) return;
    this.refreshRuns();
    this.uploads.sweep();
  }

  /** Where a file is that a session of a family has got from a run, or from another session of its owner; `undefined`: nowhere. */
  readonly findFile = (file: string, family: string): string | undefined => {
    const upload = this.uploads.find(file);
    if (upload !== undefined) return upload;
    const owner = dirname(dirname(family));
    const families = this.disk
      .list(owner)
      .flatMap((agent) => this.foldersIn(`${owner}/${agent}`))
      .map((folder) => `${folder}/${artifactsName}/${file}`);
    return families.find((name) => this.disk.stamp(name) !== undefined);
  };

  /** Runs and snapshots with subscribers, and their events. */
  refreshListened(ids: readonly string[]): void {
    this.refreshRuns();
    for (const id of ids) if (!this.tables.runs.has(id)) this.#refreshKnown(id);
    for (const id of ids) this.events.refresh(id);
  }

  runFile(session: Pick<SessionRow, 'scope' | 'id'>): RunFile {
    const known = runNames.get(session);
    const name = known ?? runFile(session.scope, session.id);
    if (known === undefined) runNames.set(session, name);
    return this.#runFileAt(name);
  }

  #runFileAt(name: string): RunFile {
    const known = this.#runFiles.get(name);
    if (known !== undefined) return known;
    const file = new RunFile(this.disk, this.tables, name, this.#find);
    this.#runFiles.set(name, file);
    return file;
  }

  /** Whether the file of a run or of events seems to be as we know it. Needs no lock, and proves nothing. */
  isAsLeft(name: string): boolean {
    const journal = this.#runFiles.get(name)?.journal ?? this.events.journalAt(name);
    try {
      return journal?.isAsLeft() ?? false;
    } catch {
      return false;
    }
  }

  /** Keeps the file of a run that is over for the next one; of many, the least recently used is removed. */
  rest(file: RunFile): void {
    file.clear();
    this.#resting.delete(file);
    this.#resting.add(file);
    if (this.#resting.size <= maxResting) return;
    const [oldest] = this.#resting;
    if (oldest !== undefined) attempt(() => this.#retire(oldest));
  }

  #retire(file: RunFile): void {
    this.#resting.delete(file);
    // Another process may have put a run into it.
    file.refresh();
    if (file.journal.exists) return;
    file.remove();
    this.#runFiles.delete(file.journal.name);
  }

  /** Removes the files that wait for runs, of whatever process. */
  removeResting(): void {
    for (const name of this.disk.list(runsFolder).map((each) => `${runsFolder}/${each}`)) {
      const stamp = this.disk.stamp(name);
      if (stamp?.size === clearedSize && this.disk.readText(name) === '\n') this.disk.unlink(name);
    }
  }

  /** Reaches what this process already knows; `false` when it is not known, or not there any more. */
  #refreshKnown(id: string): boolean {
    const { snapshots, runs } = this.tables;
    const session = (snapshots.get(id) ?? runs.get(id))?.session;
    if (session === undefined) return false;
    this.refreshSession(session.scope, session.id);
    return snapshots.has(id) || runs.has(id);
  }

  readonly #find = (scope: Scope, sessionId: string): Home | undefined => {
    for (const folder of this.#foldersOf(scope, sessionId)) {
      const tree = this.refreshFamily(folder);
      const session = tree?.sessions.get(sessionId);
      if (tree === undefined || session === undefined) continue;
      tree.states.touch();
      return { tree, session };
    }
    return undefined;
  };

  /** Where a session may be: in its own folder, else, being a fork, in that of what it was forked from. */
  *#foldersOf(scope: Scope, sessionId: string): Iterable<string> {
    const own = `${scopeFolder(scope)}/${safeName(sessionId)}`;
    yield own;
    const known = this.#pointers.get(own);
    if (known !== undefined) yield known;
    const named = readPointer(this.disk, scope, sessionId);
    if (named === undefined || named === known) return;
    this.#pointers.set(own, named);
    yield named;
  }
}

// A caller that reads this one gets the error.
function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!isWaymarkError(error)) throw error;
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
