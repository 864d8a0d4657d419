import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { parseJson } from '../../core/json/json.ts';
import { toSessionExport } from '../../session/export-session.ts';
import {
  type Fault,
  type MaintenanceOptions,
  type MaintenanceSupport,
  type PruneReport,
  type RetentionPolicy,
  requestTtl,
  type Scope,
  type VerifyOptions,
} from '../contract/store.ts';
import {
  exportRows,
  maintenanceSupport as memoryMaintenance,
  verifyTables,
} from '../memory/maintenance.ts';
import { pruneSession, spentFamilies } from '../memory/prune.ts';
import { toSessionInfo } from '../memory/reading.ts';
import { dropSessionRows, familyFinder } from '../memory/rows.ts';
import { findSession, inScope, type SessionRow } from '../memory/tables.ts';
import { createFaults, createSteps } from '../rules/maintenance-steps.ts';
import { checkPolicy } from '../rules/retention.ts';
import { parseFile } from './checked-line.ts';
import type { Directory } from './directory.ts';
import { attempt } from './disk.ts';
import { Journal } from './journal.ts';
import {
  eventsFolder,
  ownerFolder,
  requestsFolder,
  runsFolder,
  scopeFolder,
  sessionsFolder,
} from './layout.ts';
import { hasLost, removeTree, rewriteTree } from './save-tree.ts';
import type { SessionTree } from './session-tree.ts';
import { readAhead } from './timeline.ts';
import type { Transaction } from './transaction.ts';

/** Retention, deletion, verification, export and import. `fresh` creates a directory that has read nothing yet. */
export function maintenanceSupport(
  directory: Directory,
  transaction: Transaction,
  fresh: () => Directory,
): MaintenanceSupport {
  const { tables } = directory;
  const memory = memoryMaintenance(tables);
  return {
    prune: (policy, scope, options) => prune(directory, transaction, { policy, scope, options }),
    eraseOwner: (owner, options) => eraseOwner(directory, transaction, owner, options),
    verify: (options) => verify(fresh(), transaction, options),
    exportSession: (scope, sessionId) =>
      transaction.read(() => {
        directory.refreshSession(scope, sessionId);
        const session = findSession(tables, scope, sessionId);
        const now = tables.clock.now();
        // All rows are read under the lock.
        const info = session && toSessionInfo(session, now);
        return info && toSessionExport(info, [...exportRows(session, now)]);
      }),
    async importSession(scope, document, options) {
      // All sessions are read, so that no id of a snapshot is used twice.
      await transaction.open();
      await readAhead(directory, transaction, directory.scopeFolders());
      return transaction.write(() => {
        directory.refreshScopes(directory.scopeFolders());
        return memory.importSession(scope, document, options);
      });
    },
  };
}

/** Number of sessions that are deleted under one hold of the lock. */
const batch = 64;

interface PruneRequest {
  readonly policy: RetentionPolicy;
  readonly scope: Scope | undefined;
  readonly options: MaintenanceOptions | undefined;
}

/** Removes what a policy does not keep, one tree at a time under the lock. */
async function prune(
  directory: Directory,
  transaction: Transaction,
  { policy, scope, options }: PruneRequest,
): Promise<PruneReport> {
  const step = createSteps(options);
  await transaction.open();
  const scopes = scope === undefined ? directory.scopeFolders() : [scopeFolder(scope)];
  const spent: SessionRow[] = [];
  let snapshots = 0;
  for (const folder of scopes.flatMap((each) => directory.foldersIn(each))) {
    const looked = await transaction.write(() => {
      const tree = directory.refreshTree(folder, { isLoaded: false });
      const sessions = [...(tree?.sessions.values() ?? [])].filter((each) => inScope(each, scope));
      for (const session of sessions) {
        directory.runFile(session).refresh();
        const { removed, dropSession } = pruneSession(directory.tables, session, policy);
        if (dropSession) spent.push(session);
        snapshots += removed;
      }
      if (tree !== undefined) cleanTree(directory, tree);
      return sessions.length;
    });
    await step(looked);
  }
  const owners = new Set(spent.map((session) => session.scope.owner ?? null));
  const others = [...owners].flatMap((owner) => directory.scopeFolders(owner));
  await readAhead(directory, transaction, others);
  let sessions = 0;
  while (spent.length > 0) {
    const some = spent.splice(0, batch);
    const gone = await transaction.write(() => {
      const current = refreshFamilies(directory, some);
      const families = spentFamilies(directory.tables, current, policy, scope);
      return { sessions: families.size, snapshots: dropSessionRows(directory.tables, families) };
    });
    sessions += gone.sessions;
    snapshots += gone.snapshots;
    await step(0);
  }
  await transaction.write(() => {
    for (const name of scopes.flatMap((each) => directory.pointersIn(each))) {
      attempt(() => {
        if (!directory.isPointerUsed(name)) directory.disk.unlink(name);
      });
    }
  });
  return { snapshots, sessions };
}

/** Refreshes sessions, those of their sub-agents, and all runs and events; returns the sessions that are still there. */
function refreshFamilies(
  directory: Directory,
  sessions: readonly SessionRow[],
): readonly SessionRow[] {
  const { tables } = directory;
  const refresh = ({ scope, id }: SessionRow) => directory.refreshSession(scope, id)?.session ?? [];
  directory.refreshRuns();
  for (const member of sessions.flatMap(refresh).flatMap(familyFinder(tables))) refresh(member);
  directory.events.refreshAll();
  return sessions.flatMap(({ scope, id }) => findSession(tables, scope, id) ?? []);
}

/** Rewrites a tree that has lost snapshots or has old receipts. */
function cleanTree(directory: Directory, tree: SessionTree): void {
  const before = directory.tables.clock.now() - requestTtl;
  const isOld = [...tree.receipts.values()].some(({ at }) => at <= before);
  try {
    if (isOld || tree.garbage() > 0 || hasLost(directory.tables, tree))
      rewriteTree(directory, tree);
    else directory.files.sweep(tree);
  } catch (error) {
    // The tables have lost snapshots that the journal still has.
    directory.forgetTree(tree);
    throw error;
  }
}

/** Deletes all sessions of an owner, one tree at a time under the lock, and everything else of the owner. */
async function eraseOwner(
  directory: Directory,
  transaction: Transaction,
  owner: string,
  options: MaintenanceOptions | undefined,
): Promise<number> {
  const { tables, disk } = directory;
  const step = createSteps(options);
  await transaction.open();
  let erased = 0;
  const treesOf = (): readonly string[] =>
    directory.scopeFolders(owner).flatMap((scope) => directory.foldersIn(scope));
  // Sessions that are created meanwhile are deleted as well.
  for (let folders = treesOf(); folders.length > 0; folders = treesOf()) {
    for (const folder of folders) {
      const tree = directory.tree(folder, { isLoaded: false });
      const count = await transaction.write(() => {
        // A damaged one is deleted as well.
        attempt(() => tree.refresh());
        directory.refreshRuns();
        directory.events.refreshAll();
        const sessions = new Set(tree.sessions.values());
        dropSessionRows(tables, sessions);
        if (sessions.size === 0) removeTree(directory, tree);
        return sessions.size;
      });
      erased += count;
      await step(count);
    }
  }
  await transaction.write(() => {
    tables.spend.eraseOwner(owner);
    disk.discard(ownerFolder(owner), tables.newId());
    removeFilesOf(directory, owner);
  });
  return erased;
}

/** Removes files of runs, events and requests of an owner, whose sessions may have been damaged, and uploads of the runs. */
function removeFilesOf({ disk, files }: Directory, owner: string): void {
  for (const folder of [runsFolder, eventsFolder, requestsFolder]) {
    for (const name of disk.list(folder).map((each) => `${folder}/${each}`)) {
      attempt(() => {
        const [head = ''] = (disk.readText(name) ?? '').split('\n', 1);
        const content = head === '' ? undefined : parseJson(head, name);
        if (typeof content !== 'object' || content === null || !('owner' in content)) return;
        if (content.owner !== owner) return;
        disk.unlink(name);
        if (typeof content.run === 'string') files.endUploads(content.run);
      });
    }
  }
}

/** Reads the whole store again, one tree at a time under the lock, and reports its faults. `fresh` has read nothing yet. */
async function verify(
  fresh: Directory,
  transaction: Transaction,
  options: VerifyOptions = {},
): Promise<readonly Fault[]> {
  const cursor = toCursor(options.cursor);
  const step = createSteps(options);
  const faults = createFaults(options);
  await transaction.open();
  const folders = fresh.scopeFolders().flatMap((scope) => fresh.foldersIn(scope));
  let last = options.cursor;
  for (const folder of folders.sort(byLevel)) {
    if (cursor !== undefined && byLevel(folder, cursor) <= 0) continue;
    const snapshots = await transaction.read(() => {
      const tree = fresh.tree(folder);
      faults.add(guarded('hash', () => treeFaults(fresh, tree)));
      const { size } = tree.rows;
      fresh.forgetTree(tree);
      return size;
    });
    last = folder;
    await step(snapshots, { cursor: folder });
  }
  const filesIn = (folder: string) => fresh.disk.list(folder).map((name) => `${folder}/${name}`);
  const pointers = fresh.scopeFolders().flatMap((scope) => fresh.pointersIn(scope));
  const checks: readonly [Fault['kind'], readonly string[], Check][] = [
    ['unreachable', pointers, pointerFaults],
    ['run', [...filesIn(runsFolder), ...filesIn(eventsFolder)], journalFaults],
    ['run', filesIn(requestsFolder), requestFaults],
    ['hash', fresh.spend.names(), journalFaults],
  ];
  for (const [kind, names, check] of checks) {
    for (const name of names) {
      faults.add(await transaction.read(() => guarded(kind, () => check(fresh, name))));
      await step(kind === 'hash' ? 1 : 0, last === undefined ? {} : { cursor: last });
    }
  }
  return faults.found;
}

function toCursor(cursor: string | undefined): string | undefined {
  const parts = cursor?.split('/') ?? [];
  if (cursor === undefined || (parts.length === 4 && parts[0] === sessionsFolder)) return cursor;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `The cursor ${JSON.stringify(cursor)} is not one that verify of a file store has reported.`,
  );
}

/** Compares folders by owner, then agent, then session. */
function byLevel(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')];
  const level = left.findIndex((part, at) => part !== right[at]);
  if (level < 0) return 0;
  return (left[level] ?? '') < (right[level] ?? '') ? -1 : 1;
}

/** The faults of a file. What cannot be read throws. */
type Check = (fresh: Directory, name: string) => readonly Fault[];

function treeFaults(fresh: Directory, tree: SessionTree): readonly Fault[] {
  const { journal, folder } = tree;
  tree.refresh();
  // A folder without a journal belongs to a session that is just being created or deleted.
  if (!journal.exists) return unfinished(journal);
  if (tree.scope === undefined) {
    return [{ kind: 'unreachable', message: `No session belongs in the folder "${folder}".` }];
  }
  // Damaged files of runs are reported later.
  for (const session of tree.sessions.values()) attempt(() => fresh.runFile(session).refresh());
  const verified = verifyTables(fresh.tables, (hash) => fresh.files.problemOf(tree, hash));
  const faults = [...verified].flatMap(({ found }) => found);
  const strays = fresh.files.unneeded(tree).map((name): Fault => {
    return { kind: 'unreachable', message: `No snapshot names the file "${name}".` };
  });
  return [...unfinished(journal), ...faults, ...strays];
}

function pointerFaults(fresh: Directory, name: string): readonly Fault[] {
  // A pointer without its session is harmless. It only has to be readable.
  fresh.readPointer(name);
  return [];
}

function journalFaults({ disk }: Directory, name: string): readonly Fault[] {
  const journal = new Journal(disk, name, { reset() {}, head() {}, line() {} });
  journal.refresh();
  return unfinished(journal);
}

function requestFaults({ disk }: Directory, name: string): readonly Fault[] {
  const text = disk.readText(name);
  if (text === undefined) return [];
  if (!text.endsWith('\n')) return unfinished({ name, isWhole: false });
  parseFile(text, name);
  return [];
}

/** The fault of a file that does not end with a whole line. */
function unfinished({ name, isWhole }: Pick<Journal, 'name' | 'isWhole'>): readonly Fault[] {
  if (isWhole) return [];
  const message = `"${name}" ends within a line: a process died while it wrote a change, which was never acknowledged, or the file was cut. Compare it with a backup; the next change of the session replaces the unfinished line.`;
  return [{ kind: 'unfinished', message }];
}

function guarded(kind: Fault['kind'], check: () => readonly Fault[]): readonly Fault[] {
  try {
    return check();
  } catch (error) {
    if (isWaymarkError(error)) return [{ kind, message: error.message }];
    throw error;
  }
}
