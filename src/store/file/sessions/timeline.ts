import type { Scope, TimelineSupport } from '../../contract/store.ts';
import { findSession } from '../../memory/tables.ts';
import { timelineSupport as memoryTimeline } from '../../memory/timeline.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { scopeFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { hasLost, rewriteFamilies } from '../maintenance/rewrite.ts';
import { checkStored } from './check-stored.ts';
import { foldersOfOwner, loadFolders, readAhead } from './load-sessions.ts';
import { saveSession } from './save.ts';
import type { SessionTree } from './session-tree.ts';

/** Sessions and their trees. */
export function timelineSupport(mirror: DirectoryCache, gate: DirectoryTransaction): TimelineSupport {
  const { tables } = mirror;
  const memory = memoryTimeline(tables);

  /** Does something to a snapshot, and writes what that has changed about its session. */
  const toSnapshot = <Result>(
    scope: Scope,
    snapshotId: string,
    work: () => Promise<Result>,
  ): Promise<Result> =>
    gate.write(
      () => {
        mirror.reachSnapshot(scope, snapshotId);
        return work();
      },
      () => {
        const session = tables.snapshots.get(snapshotId)?.session;
        if (session !== undefined) saveSession(mirror, session, { snapshotId });
      },
    );

  return {
    getSession: (scope, sessionId, options) =>
      gate.read(() => {
        mirror.reachSession(scope, sessionId);
        if (options?.state === true) checkStored(mirror, scope, { sessionId });
        return memory.getSession(scope, sessionId, options);
      }),
    async listSessions(scope, options) {
      const folder = scopeFolder(scope);
      await readAhead(mirror, gate, [folder]);
      return gate.read(() => {
        loadFolders(mirror, [folder]);
        return memory.listSessions(scope, options);
      });
    },
    updateSession: (scope, sessionId, change) =>
      gate.write(
        () => {
          mirror.reachSession(scope, sessionId);
          return memory.updateSession(scope, sessionId, change);
        },
        () => {
          const session = findSession(tables, scope, sessionId);
          if (session !== undefined) saveSession(mirror, session);
        },
      ),
    async deleteSession(scope, sessionId) {
      // Its sub-agents' sessions are other agents', but the same owner's.
      await readAhead(mirror, gate, foldersOfOwner(mirror, scope.owner));
      let own: SessionTree | undefined;
      return gate.write(
        () => {
          own = mirror.reachSession(scope, sessionId)?.family;
          loadFolders(mirror, foldersOfOwner(mirror, scope.owner));
          mirror.reachAllEvents();
          return memory.deleteSession(scope, sessionId);
        },
        () => {
          const lost = [...mirror.families.values()].filter((family) => hasLost(tables, family));
          // The session itself comes last: as long as it is there, deleting it can be tried again.
          rewriteFamilies(
            mirror,
            lost.filter((family) => family !== own).concat(lost.filter((family) => family === own)),
          );
          mirror.sweep();
        },
      );
    },
    listSnapshots: (scope, sessionId, options) =>
      gate.read(() => {
        mirror.reachSession(scope, sessionId);
        return memory.listSnapshots(scope, sessionId, options);
      }),
    restore: (scope, snapshotId, options) =>
      toSnapshot(scope, snapshotId, () => memory.restore(scope, snapshotId, options)),
    fork: (scope, snapshotId, target) =>
      gate.write(
        () => {
          mirror.reachSnapshot(scope, snapshotId);
          mirror.reachSession(scope, target.sessionId);
          return memory.fork(scope, snapshotId, target);
        },
        () => {
          const session = findSession(tables, scope, target.sessionId);
          if (session !== undefined) saveSession(mirror, session);
        },
      ),
    label: (scope, snapshotId, label, options) =>
      toSnapshot(scope, snapshotId, () => memory.label(scope, snapshotId, label, options)),
  };
}
