import { isWaymarkError, WaymarkError } from '../../../core/error.ts';
import type { Fault, MaintenanceProgress, VerifyOptions } from '../../contract/store.ts';
import { toReadError } from '../../rules/errors.ts';
import { createFaults } from '../../rules/maintenance-steps.ts';
import { one, statement } from '../database/query.ts';
import type { SqlContext } from '../sql-context.ts';
import { sessionsAfter } from './prune.ts';
import { pagesOf } from './row-pages.ts';
import { stepsOf } from './steps.ts';
import {
  branchesAfter,
  doubtfulBranches,
  type JournalAt,
  journalStart,
  strayTables,
  verifyBranch,
  verifyJournal,
  verifyReceipts,
  verifyStrays,
} from './verify.ts';
import { verifySessions } from './verify-sessions.ts';

const countAll = statement<{ count: number }>(
  'verify_count',
  `SELECT (SELECT COUNT(*) FROM @sessions WHERE row_id > $1) +
     (SELECT COUNT(*) FROM @branches WHERE row_id > $2) AS count`,
);

/** What has been looked at: sessions and branches up to these numbers. */
interface Cursor {
  readonly sessions: number;
  readonly branches: number;
}

/** In a cursor: all sessions, and what the database checks itself. */
const allSessions = Number.MAX_SAFE_INTEGER;

/** Looks at everything in a store, in small steps. */
export async function verifyStore(
  { db, state, gcScheduler }: SqlContext,
  options: VerifyOptions = {},
): Promise<readonly Fault[]> {
  const step = stepsOf(options);
  const from = fromCursor(options.cursor);
  // Damage may stop the garbage collection, and is reported below.
  const collect = (): Promise<void> => gcScheduler.now(db).catch(unlessDamage);
  await collect();
  const { count: total } = await db.read(() => one(countAll, from.sessions, from.branches));
  const progress = (at: Cursor): MaintenanceProgress => ({ total, cursor: toCursor(at) });
  const faults = createFaults(options);

  /** Turns leave garbage behind meanwhile: what nothing holds is a fault only if a collection does not remove it. */
  const confirmed = async (find: () => Promise<readonly Fault[]>): Promise<readonly Fault[]> => {
    let found = await faultsOf(find);
    for (let tries = 2; tries > 0 && found.length > 0; tries--) {
      await collect();
      found = await faultsOf(find);
    }
    return found;
  };

  /** The faults of some sessions. If one of them cannot be read, each is read alone. */
  const sessionFaults = async (sessions: readonly number[]): Promise<readonly Fault[]> => {
    const find = (some: readonly number[]) => db.readInSteps(() => verifySessions(some, state));
    try {
      return await find(sessions);
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    const found: Fault[] = [];
    for (const session of sessions) found.push(...(await faultsOf(() => find([session]))));
    return found;
  };

  const branchFaults = (branch: number): Promise<readonly Fault[]> =>
    db.readInSteps(() => verifyBranch(branch));

  /** Branches that may have faults. If one of them cannot be read, each is read alone. */
  const doubtful = async (branches: readonly number[]): Promise<readonly number[]> => {
    const found: number[] = [];
    try {
      for (let some = branches; some.length > 0; ) {
        const now = some;
        const seen = await db.read(() => doubtfulBranches(now));
        found.push(...seen.doubtful);
        some = seen.left;
        if (some.length > 0) await step(0);
      }
      return found;
    } catch (error) {
      if (!isDamage(error)) throw error;
      return branches;
    }
  };

  // What it finds is reported after the last session, so a call that was stopped before that is followed by one that checks again.
  const isChecked = from.sessions === allSessions;
  const check = async () => (isChecked ? [] : ((await db.check?.(options.signal)) ?? []));
  const checking = db.checksAside === true ? check() : undefined;
  // If the sessions cannot be read, that is the error.
  checking?.catch(() => {});
  for await (const sessions of pagesOf(db, (after) => sessionsAfter(after), from.sessions)) {
    faults.add(await sessionFaults(sessions));
    await step(sessions.length, progress({ ...from, sessions: sessions.at(-1) ?? 0 }));
  }
  const damage = await (checking ?? check());
  faults.add(damage.map((message): Fault => ({ kind: 'hash', message })));
  for await (const branches of pagesOf(db, branchesAfter, from.branches)) {
    for (const branch of await doubtful(branches)) {
      faults.add(await confirmed(() => branchFaults(branch)));
    }
    await step(
      branches.length,
      progress({ sessions: allSessions, branches: branches.at(-1) ?? 0 }),
    );
  }
  for (let at: JournalAt | undefined = journalStart; at !== undefined; ) {
    const after: JournalAt = at;
    // What cannot be read is not read any further.
    at = undefined;
    const found = await faultsOf(async () => {
      const batch = await db.read(() => verifyJournal(after, state));
      at = batch.next;
      return batch.faults;
    });
    faults.add(found);
    await step(0);
  }
  for (let key: Uint8Array | undefined = new Uint8Array(); key !== undefined; ) {
    const after: Uint8Array = key;
    key = undefined;
    const found = await faultsOf(async () => {
      const batch = await db.read(() => verifyReceipts(after, state));
      key = batch.next;
      return batch.faults;
    });
    faults.add(found);
    await step(0);
  }
  for (let table = 0; table < strayTables; table++) {
    for (let after: number | undefined = -1; after !== undefined; ) {
      const at: number = after;
      // A table that cannot be read is not read any further.
      after = undefined;
      const found = await confirmed(async () => {
        const batch = await db.read(() => verifyStrays(table, at));
        after = batch.next;
        return batch.faults;
      });
      faults.add(found);
      await step(0);
    }
  }
  return faults.found;
}

function toCursor({ sessions, branches }: Cursor): string {
  return `${sessions}.${branches}`;
}

function fromCursor(cursor: string | undefined): Cursor {
  if (cursor === undefined) return { sessions: 0, branches: 0 };
  const [, sessions, branches] = /^(\d{1,16})\.(\d{1,16})$/.exec(cursor) ?? [];
  if (sessions === undefined || branches === undefined) {
    const shown = JSON.stringify(cursor.slice(0, 40));
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The cursor ${shown} is not one that verify reported. Pass the last one that onProgress got from this store.`,
    );
  }
  return { sessions: Number(sessions), branches: Number(branches) };
}

function isDamage(error: unknown): error is WaymarkError {
  return isWaymarkError(error) && error.status === 'DATA_LOSS';
}

function unlessDamage(error: unknown): void {
  if (!isDamage(toReadError(error))) throw error;
}

/** What cannot be read at all is a fault as well. */
async function faultsOf(find: () => Promise<readonly Fault[]>): Promise<readonly Fault[]> {
  try {
    return await find();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [{ kind: 'hash', message: error.message }];
  }
}
