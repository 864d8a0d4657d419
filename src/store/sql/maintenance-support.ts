import { toSessionExport } from '../../session/export-session.ts';
import { fromSessionExport } from '../../session/import-session.ts';
import type {
  MaintenanceOptions,
  MaintenanceSupport,
  RetentionPolicy,
  Scope,
} from '../contract/store.ts';
import { createSteps, type Step } from '../rules/maintenance-steps.ts';
import { resealMeta } from './content/opened-driver.ts';
import { rotateRows } from './content/rotate.ts';
import { pruneNotes } from './memory.ts';
import { eraseOwned, eraseSpent, type SpentSession } from './retention/erase.ts';
import { countSessions, pagesOf, sessionsAfter } from './retention/pages.ts';
import { pruneSessions } from './retention/prune.ts';
import { verifyStore } from './retention/verify.ts';
import { exportSession } from './sessions/export-session.ts';
import { importSession } from './sessions/import-session.ts';
import { clearSearch } from './sessions/search.ts';
import type { SqlContext } from './sql-context.ts';

export function maintenanceSupport(
  context: SqlContext,
): MaintenanceSupport & { rotateKeys(options?: MaintenanceOptions): Promise<number> } {
  const { state, gcScheduler, newId, cipher } = context;
  const db = context.db.forMaintenance ?? context.db;

  /** Removes garbage of deleted snapshots and sessions, also from the files. */
  const clean = async (): Promise<void> => {
    await gcScheduler.now(db);
    await db.scrub?.();
  };

  /** Prunes all sessions, and gives those that may go. `report` has what was removed, also when it is stopped. */
  const pruneAll = async (
    { policy, scope }: { readonly policy: RetentionPolicy; readonly scope: Scope | undefined },
    report: { snapshots: number },
    step: Step,
  ): Promise<readonly SpentSession[]> => {
    const spent: SpentSession[] = [];
    const total = await db.read(() => countSessions(scope));
    for await (const sessions of pagesOf(db, (after) => sessionsAfter(after, scope))) {
      const count = async (removed: number): Promise<void> => {
        report.snapshots += removed;
        await step(0);
      };
      spent.push(...(await pruneSessions(db, sessions, policy, count)));
      await step(sessions.length, { total });
    }
    return spent;
  };

  /** Deletes whole sessions, a few at a time. */
  const dropAll = async (
    sessions: readonly SpentSession[],
    report: { snapshots: number; sessions: number },
    step: Step,
  ): Promise<void> => {
    const spent = new Map(sessions.map((each) => [each.session, each]));
    const atOnce = db.dialect.atOnce.sessions;
    for (let from = 0; from < sessions.length; from += atOnce) {
      const some = sessions.slice(from, from + atOnce);
      const erased = await db.write(() => eraseSpent(some, spent));
      report.snapshots += erased.snapshots;
      report.sessions += erased.sessions;
      db.tell(erased.hints);
      await step(0);
    }
  };

  return {
    async prune(policy, scope, options) {
      const step = createSteps(options);
      const report = { snapshots: 0, sessions: 0 };
      try {
        await dropAll(await pruneAll({ policy, scope }, report, step), report, step);
      } catch (error) {
        if (report.snapshots > 0) await clean();
        throw error;
      }
      await db.write(() => pruneNotes());
      const forgot = await gcScheduler.forgetRequests(db);
      if (forgot || report.snapshots > 0) await clean();
      else await gcScheduler.now(db);
      return report;
    },
    async eraseOwner(owner, options) {
      const step = createSteps(options);
      let sessions = 0;
      try {
        for (;;) {
          const erased = await db.write(() => eraseOwned(owner));
          db.tell(erased.hints);
          sessions += erased.sessions;
          if (erased.sessions === 0) break;
          await step();
        }
      } catch (error) {
        if (sessions > 0) await clean();
        throw error;
      }
      // Also of memory that was added outside of sessions.
      await clean();
      return sessions;
    },
    verify: (options) => verifyStore({ ...context, db }, options),
    async exportSession(scope, sessionId) {
      const found = await context.db.read(() => exportSession(scope, sessionId, state));
      return found && (await toSessionExport(found.info, found.rows));
    },
    async importSession(scope, document, options = {}) {
      const read = fromSessionExport(document);
      const { sessionId = read.session.sessionId } = options;
      return context.db.write(() => importSession(scope, read, sessionId, newId, state));
    },
    async rotateKeys(options) {
      const step = createSteps(options);
      // Words that were stored before there was a key.
      await db.write(() => clearSearch());
      const sealed = await rotateRows(db, cipher, step);
      await db.write(() => resealMeta(cipher));
      await db.scrub?.();
      return sealed;
    },
  };
}
