import { letOthersRun } from '../../../core/platform.ts';
import {
  type MaintenanceOptions,
  type PruneReport,
  type RetentionPolicy,
  requestTtl,
  type Scope,
} from '../../contract/store.ts';
import { pruneInSteps } from '../../memory/prune.ts';
import type { SessionRow } from '../../memory/tables.ts';
import { createSteps, withoutPause } from '../../rules/maintenance-steps.ts';
import { checkPolicy } from '../../rules/retention.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { scopeFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { hasLost, rewriteFamilies } from './rewrite.ts';

/**
 * Removes what a policy does not keep, family by family, so that turns do not wait long. Whole sessions go in one step at the end:
 * whether one may depends on its sub-agents' sessions.
 */
export async function prune(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  {
    policy,
    scope,
    options,
  }: {
    readonly policy: RetentionPolicy;
    readonly scope: Scope | undefined;
    readonly options: MaintenanceOptions | undefined;
  },
): Promise<PruneReport> {
  checkPolicy(policy);
  const step = createSteps(options);
  const within = scope === undefined ? allFolders(cache) : [scopeFolder(scope)];
  let snapshots = 0;
  for (const folder of within.flatMap((each) => cache.foldersIn(each))) {
    snapshots += await pruneFolder(cache, transaction, { ...policy, dropSessions: false }, folder);
    step();
    await letOthersRun();
  }
  if (policy.dropSessions !== true) return { snapshots, sessions: 0 };
  const dropped = await dropSessions(cache, transaction, policy, scope);
  return { snapshots: snapshots + dropped.snapshots, sessions: dropped.sessions };
}

async function pruneFolder(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  policy: RetentionPolicy,
  folder: string,
): Promise<number> {
  const { tables } = cache;
  let tree: SessionTree | undefined;
  const report = await transaction.write(
    () => {
      tree = cache.refreshCold(folder);
      const sessions = new Map<string, SessionRow>();
      for (const session of tree?.sessions.values() ?? []) {
        cache.runFile(session).refresh();
        sessions.set(session.id, session);
      }
      return withoutPause(pruneInSteps({ ...tables, sessions }, policy));
    },
    () => {
      if (tree === undefined) return;
      const isOld = tree.hasOldReceipts(tables.clock.now() - requestTtl);
      if (isOld || hasLost(tables, tree)) rewriteFamilies(cache, [tree]);
    },
  );
  return report.snapshots;
}

async function dropSessions(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  policy: RetentionPolicy,
  scope: Scope | undefined,
): Promise<PruneReport> {
  const { tables } = cache;
  const folders = (): readonly string[] =>
    scope === undefined ? allFolders(cache) : foldersOfOwner(cache, scope.owner);
  await readAhead(cache, transaction, folders());
  return transaction.write(
    () => {
      loadFolders(cache, folders());
      cache.refreshAllEvents();
      return withoutPause(pruneInSteps(tables, policy, scope));
    },
    () => {
      const trees = [...cache.trees.values()];
      rewriteFamilies(
        cache,
        trees.filter((each) => hasLost(tables, each)),
      );
      cache.sweep();
    },
  );
}
