import {
  type PruneReport,
  type RetentionPolicy,
  requestTtl,
  type Scope,
} from '../../contract/store.ts';
import { prune as pruneTables } from '../../memory/prune.ts';
import type { SessionRow } from '../../memory/tables.ts';
import { checkPolicy } from '../../rules/retention.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { scopeFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { hasLost, rewriteFamilies } from './rewrite.ts';

/**
 * Removes what a policy does not keep, family by family, so that nobody waits long. Whole sessions go in one step at the end:
 * whether one may depends on its sub-agents' sessions.
 */
export async function prune(
  mirror: DirectoryCache,
  gate: DirectoryTransaction,
  policy: RetentionPolicy,
  scope: Scope | undefined,
): Promise<PruneReport> {
  checkPolicy(policy);
  const within = scope === undefined ? allFolders(mirror) : [scopeFolder(scope)];
  let snapshots = 0;
  for (const folder of within.flatMap((each) => mirror.foldersIn(each))) {
    snapshots += await pruneFolder(mirror, gate, { ...policy, dropSessions: false }, folder);
  }
  if (policy.dropSessions !== true) return { snapshots, sessions: 0 };
  const dropped = await dropSessions(mirror, gate, policy, scope);
  return { snapshots: snapshots + dropped.snapshots, sessions: dropped.sessions };
}

async function pruneFolder(
  mirror: DirectoryCache,
  gate: DirectoryTransaction,
  policy: RetentionPolicy,
  folder: string,
): Promise<number> {
  const { tables } = mirror;
  let family: SessionTree | undefined;
  const report = await gate.write(
    () => {
      family = mirror.reachCold(folder);
      const sessions = new Map<string, SessionRow>();
      for (const session of family?.sessions.values() ?? []) {
        mirror.runFile(session).refresh();
        sessions.set(session.id, session);
      }
      return pruneTables({ ...tables, sessions }, policy, undefined);
    },
    () => {
      if (family === undefined) return;
      const isOld = family.hasOldReceipts(tables.clock.now() - requestTtl);
      if (isOld || hasLost(tables, family)) rewriteFamilies(mirror, [family]);
    },
  );
  return report.snapshots;
}

async function dropSessions(
  mirror: DirectoryCache,
  gate: DirectoryTransaction,
  policy: RetentionPolicy,
  scope: Scope | undefined,
): Promise<PruneReport> {
  const { tables } = mirror;
  const folders = (): readonly string[] =>
    scope === undefined ? allFolders(mirror) : foldersOfOwner(mirror, scope.owner);
  await readAhead(mirror, gate, folders());
  return gate.write(
    () => {
      loadFolders(mirror, folders());
      mirror.reachAllEvents();
      return pruneTables(tables, policy, scope);
    },
    () => {
      const families = [...mirror.families.values()];
      rewriteFamilies(
        mirror,
        families.filter((each) => hasLost(tables, each)),
      );
      mirror.sweep();
    },
  );
}
