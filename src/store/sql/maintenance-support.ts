import { isWaymarkError } from '../../core/error.ts';
import { toSessionExport } from '../../session/export-session.ts';
import { fromSessionExport } from '../../session/import-session.ts';
import type { Fault, MaintenanceSupport, RetentionPolicy, Scope } from '../contract/store.ts';
import { toReadError } from '../rules/errors.ts';
import { checkPolicy } from '../rules/retention.ts';
import { type RotationPlace, rotateSome, rotationStart } from './content/rotate.ts';
import { resealMeta } from './database/meta.ts';
import type { Plan } from './database/query.ts';
import { eraseOwned, eraseSpent } from './retention/erase.ts';
import { pruneSession, sessionsAfter } from './retention/prune.ts';
import {
  branchesAfter,
  type JournalAt,
  journalStart,
  verifyBranch,
  verifyJournal,
  verifySession,
  verifyStray,
} from './retention/verify.ts';
import { exportSession } from './sessions/export-session.ts';
import { importSession } from './sessions/import-session.ts';
import { clearSearch } from './sessions/search.ts';
import type { SqlContext } from './sql-context.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(
  context: SqlContext,
): MaintenanceSupport & { rotateKeys(): Promise<number> } {
  const { db, state, gcScheduler, newId, cipher } = context;

  /** Numbers of rows in order, a page at a time, so that what is written meanwhile is not waited for. */
  async function* numbers(
    page: (after: number) => Plan<readonly number[]>,
  ): AsyncGenerator<number, void, undefined> {
    for (let after = 0; ; ) {
      const found = await db.read(() => page(after));
      yield* found;
      const last = found.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  const pruneAll = async (
    policy: RetentionPolicy,
    scope: Scope | undefined,
  ): Promise<{ removed: number; spent: Set<number> }> => {
    let removed = 0;
    const spent = new Set<number>();
    for await (const rowId of numbers((after) => sessionsAfter(after, scope))) {
      for (let more = true; more; ) {
        const step = await db.write(() => pruneSession(rowId, policy));
        removed += step.removed;
        more = step.more;
        if (step.spent && !step.more) spent.add(rowId);
      }
    }
    return { removed, spent };
  };

  return {
    async prune(policy, scope) {
      checkPolicy(policy);
      const { removed, spent } = await pruneAll(policy, scope);
      let snapshots = removed;
      let sessions = 0;
      for (const rowId of spent) {
        const erased = await db.write(() => eraseSpent(rowId, spent));
        snapshots += erased?.snapshots ?? 0;
        sessions += erased?.sessions ?? 0;
        db.tell(erased?.hints ?? []);
      }
      const forgot = await gcScheduler.forgetRequests();
      await gcScheduler.now();
      if (forgot || snapshots > 0) await db.scrub();
      return { snapshots, sessions };
    },
    async eraseOwner(owner) {
      let sessions = 0;
      for (;;) {
        const erased = await db.write(() => eraseOwned(owner));
        db.tell(erased.hints);
        sessions += erased.sessions;
        if (erased.sessions === 0) break;
      }
      await gcScheduler.now();
      if (sessions > 0) await db.scrub();
      return sessions;
    },
    async verify({ onProgress } = {}) {
      // Damage may stop the garbage collection, and is reported below.
      await gcScheduler.now().catch(unlessDamage);
      const found = (await db.check?.()) ?? [];
      const faults: Fault[] = found.map((message) => ({ kind: 'hash', message }));
      let done = 0;
      const add = (found: readonly Fault[]): void => {
        faults.push(...found);
        onProgress?.(++done);
      };
      for await (const rowId of numbers((after) => sessionsAfter(after, undefined))) {
        add(await faultsOf(() => db.read(() => verifySession(rowId, state))));
      }
      for await (const rowId of numbers(branchesAfter)) {
        add(await faultsOf(() => db.read(() => verifyBranch(rowId))));
      }
      for (let at: JournalAt | undefined = journalStart; at !== undefined; ) {
        const from: JournalAt = at;
        const step = await db.read(() => verifyJournal(from, state));
        add(step.faults);
        at = step.next;
      }
      add(await faultsOf(() => db.read(() => verifyStray())));
      return faults;
    },
    async exportSession(scope, sessionId) {
      const found = await db.read(() => exportSession(scope, sessionId, state));
      return found && (await toSessionExport(found.info, found.rows));
    },
    async importSession(scope, document, options = {}) {
      const read = fromSessionExport(document);
      const { sessionId = read.session.sessionId } = options;
      return db.write(() => importSession(scope, read, sessionId, newId, state));
    },
    async rotateKeys() {
      // Words that were stored before there was a key.
      await db.write(() => clearSearch());
      let sealed = 0;
      for (let place: RotationPlace | undefined = rotationStart; place !== undefined; ) {
        const at: RotationPlace = place;
        const step = await db.write(() => rotateSome(at, cipher));
        sealed += step.sealed;
        place = step.next;
      }
      await db.write(() => resealMeta(cipher));
      await db.scrub();
      return sealed;
    },
  };
}

function unlessDamage(error: unknown): void {
  const told = toReadError(error);
  if (!isWaymarkError(told) || told.status !== 'DATA_LOSS') throw error;
}

/** What cannot be read at all is a fault as well. */
async function faultsOf(find: () => Promise<readonly Fault[]>): Promise<readonly Fault[]> {
  try {
    return await find();
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'DATA_LOSS') throw error;
    return [{ kind: 'hash', message: error.message }];
  }
}
