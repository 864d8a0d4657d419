import { invalid, isWaymarkError } from '../../core/error.ts';
import { toSessionExport } from '../../session/export-session.ts';
import type {
  Fault,
  MaintenanceOptions,
  MaintenanceSupport,
  PruneReport,
  VerifyOptions,
} from '../contract/store.ts';
import { exportRows, verifyTables } from '../memory/maintenance.ts';
import { createPruning } from '../memory/prune.ts';
import { toSessionInfo } from '../memory/reading.ts';
import { forgetOldRequests } from '../memory/requests.ts';
import { dropSessionRows } from '../memory/rows.ts';
import { findSession } from '../memory/tables.ts';
import { createFaults, createSteps } from '../rules/maintenance-steps.ts';
import { readAhead } from './calls.ts';
import type { Directory } from './directory.ts';
import { attempt } from './disk.ts';
import { Journal } from './journal.ts';
import { ownerFolder, requestsFolder, runsFolder, scopeFolder, sessionsFolder } from './layout.ts';
import { hasLost, removeTree, rewriteTree } from './save-tree.ts';
import type { SessionTree } from './session-tree.ts';
import type { Transaction } from './transaction.ts';

/** Retention, deletion, verification and export. `fresh` creates a directory that has read nothing yet. */
export function maintenanceSupport(
  directory: Directory,
  transaction: Transaction,
  fresh: () => Directory,
): Omit<MaintenanceSupport, 'importSession'> {
  const { tables } = directory;
  return {
    prune: (...request) => prune(directory, transaction, ...request),
    eraseOwner: (owner, options) => eraseOwner(directory, transaction, owner, options),
    verify: (options) => verify(fresh(), transaction, options),
    exportSession: (scope, sessionId) =>
      transaction.read(() => {
        const session = findSession(tables, scope, sessionId);
        const now = tables.clock.now();
        // All rows are read under the lock.
        const info = session && toSessionInfo(session, now);
        return info && toSessionExport(info, [...exportRows(session, now)]);
      }),
  };
}

/** Removes what a policy does not keep, one tree at a time under the lock. */
async function prune(
  directory: Directory,
  transaction: Transaction,
  ...[policy, scope, options]: Parameters<MaintenanceSupport['prune']>
): Promise<PruneReport> {
  const step = createSteps(options);
  await transaction.open();
  const scopes = scope === undefined ? directory.scopeFolders() : [scopeFolder(scope)];
  const pruning = createPruning(directory.tables, policy, scope);
  for (const folder of scopes.flatMap((each) => directory.foldersIn(each))) {
    const looked = await transaction.write(() => {
      const tree = directory.refreshTree(folder, { isLoaded: false });
      if (tree === undefined) return 0;
      const count = pruning.prune(tree.sessions.values());
      cleanTree(directory, tree);
      return count;
    });
    await step(looked);
  }
  const owners = new Set(pruning.spent.map((session) => session.scope.owner ?? null));
  const others = [...owners].flatMap((owner) => directory.scopeFolders(owner));
  await readAhead(directory, transaction, others);
  while (pruning.spent.length > 0) {
    await transaction.write(() => pruning.dropSome());
    await step(0);
  }
  await transaction.write(() => {
    for (const folder of [...scopes, requestsFolder]) directory.sweepPointers(folder);
    directory.refreshRuns();
  });
  return pruning.report;
}

/** Rewrites a tree that is mostly garbage, has unused artifacts, or has lost snapshots or requests. Each rewrite waits for the disk. */
function cleanTree(directory: Directory, tree: SessionTree): void {
  forgetOldRequests(directory.tables);
  try {
    const isUnclean = tree.unusedBytes() > 0 || tree.isMostlyGarbage();
    if (isUnclean || hasLost(directory.tables, tree)) rewriteTree(directory, tree);
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
  await transaction.write(() => tables.memory.eraseOwner(owner));
  let erased = 0;
  const treesOf = (): readonly string[] =>
    directory.scopeFolders(owner).flatMap((scope) => directory.foldersIn(scope));
  // Sessions that are created meanwhile are deleted as well.
  for (let folders = treesOf(); folders.length > 0; folders = treesOf()) {
    for (const folder of folders) {
      const tree = directory.tree(folder, { isLoaded: false });
      const count = await transaction.write(() => {
        // A damaged one is deleted as well.
        attempt(() => tree.journal.refresh());
        const sessions = new Set(tree.sessions.values());
        dropSessionRows(tables, sessions);
        removeTree(directory, tree);
        directory.forgetTree(tree);
        return sessions.size;
      });
      erased += count;
      await step(count);
    }
  }
  await transaction.write(() => {
    tables.spend.eraseOwner(owner);
    disk.discard(ownerFolder(owner));
    // Those of damaged sessions.
    directory.refreshRuns();
    directory.sweepPointers(requestsFolder);
  });
  return erased;
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
  for (const folder of folders.sort()) {
    if (cursor !== undefined && folder <= cursor) continue;
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
  const progress = last === undefined ? {} : { cursor: last };
  for (const pointers of [...fresh.scopeFolders(), runsFolder, requestsFolder]) {
    for (const name of fresh.pointersIn(pointers)) {
      const kind = pointers.startsWith(sessionsFolder) ? 'unreachable' : 'run';
      faults.add(await transaction.read(() => guarded(kind, () => pointerFaults(fresh, name))));
      await step(0, progress);
    }
  }
  for (const name of [...fresh.spend.names(), ...fresh.memory.names()]) {
    faults.add(await transaction.read(() => guarded('hash', () => journalFaults(fresh, name))));
    await step(1, progress);
  }
  return faults.found;
}

function toCursor(cursor: string | undefined): string | undefined {
  const parts = cursor?.split('/') ?? [];
  if (cursor === undefined || (parts.length === 4 && parts[0] === sessionsFolder)) return cursor;
  throw invalid(
    `The cursor ${JSON.stringify(cursor)} is not one that verify of a file store has reported.`,
  );
}

// The faults of a file. What cannot be read throws.

function treeFaults(fresh: Directory, tree: SessionTree): readonly Fault[] {
  const { journal, folder } = tree;
  journal.refresh();
  // A folder without a journal belongs to a session that is just being created or deleted.
  if (!journal.exists) return unfinished(journal);
  if (tree.scope === undefined) {
    return [{ kind: 'unreachable', message: `No session belongs in the folder "${folder}".` }];
  }
  const verified = verifyTables(fresh.tables, fresh.files.reading(tree));
  const faults = [...verified].flatMap(({ found }) => found);
  const strays = fresh.files.unneeded(tree).map((name): Fault => {
    return { kind: 'unreachable', message: `No snapshot names the file "${name}".` };
  });
  return [...unfinished(journal), ...faults, ...strays];
}

// A pointer without its session is harmless. It only has to be readable.
function pointerFaults(fresh: Directory, name: string): readonly Fault[] {
  const isWhole = fresh.readPointer(name) !== undefined || fresh.disk.stat(name) === undefined;
  return unfinished({ name, isWhole });
}

function journalFaults({ disk }: Directory, name: string): readonly Fault[] {
  const journal = new Journal(disk, name, { reset() {}, line() {} });
  journal.refresh();
  return unfinished(journal);
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
