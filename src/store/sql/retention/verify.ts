import { isWaymarkError, WaymarkError } from '../../../core/error.ts';
import type { Fault, MaintenanceProgress, VerifyOptions } from '../../contract/store.ts';
import { toReadError } from '../../rules/errors.ts';
import { createFaults, createSteps } from '../../rules/maintenance-steps.ts';
import { one, type Plan, statement } from '../database/query.ts';
import type { SqlContext } from '../sql-context.ts';
import { pagesOf, sessionsAfter } from './pages.ts';
import {
  branchesAfter,
  journalStart,
  strayTables,
  type VerifiedRows,
  verifyBranches,
  verifyJournal,
  verifyReceipts,
  verifyStrays,
} from './verify-rows.ts';
import { verifySessions } from './verify-sessions.ts';

const countAll = statement<{ count: number }>(
  'verify_count',
  `SELECT (SELECT COUNT(*) FROM @sessions WHERE row_id > $1) +
     (SELECT COUNT(*) FROM @branches WHERE row_id > $2) AS count`,
);

/** The last session and the last branch that have been verified. */
interface Cursor {
  readonly sessions: number;
  readonly branches: number;
}

/** In a cursor: all sessions, and the database's own check. */
const allSessions = Number.MAX_SAFE_INTEGER;

type FindFaults = () => Promise<readonly Fault[]>;

/** Looks at everything in a store, in small steps. */
export async function verifyStore(
  { db, state, gcScheduler }: SqlContext,
  options: VerifyOptions = {},
): Promise<readonly Fault[]> {
  const step = createSteps(options);
  const from = fromCursor(options.cursor);
  // Damage may stop the garbage collection, and is reported below.
  const collect = (): Promise<void> => gcScheduler.now(db).catch(unlessDamage);
  await collect();
  const { count: total } = await db.read(() => one(countAll, from.sessions, from.branches));
  const progress = ({ sessions, branches }: Cursor): MaintenanceProgress => ({
    total,
    cursor: `${sessions}.${branches}`,
  });
  const faults = createFaults(options);

  /** Finds faults again, because turns leave garbage behind meanwhile: it is a fault only if a collection does not remove it. */
  const confirmed = async (find: FindFaults): Promise<readonly Fault[]> => {
    let found = await faultsOf(find);
    for (let tries = 2; tries > 0 && found.length > 0; tries--) {
      await collect();
      found = await faultsOf(find);
    }
    return found;
  };

  // Its faults are reported after the last session, so a call that was stopped before that is followed by one that checks again.
  const isChecked = from.sessions === allSessions;
  const check = async () => (isChecked ? [] : ((await db.check?.(options.signal)) ?? []));
  const checking = db.checksAside === true ? check() : undefined;
  // If the sessions cannot be read, that is the error.
  checking?.catch(() => {});
  for await (const sessions of pagesOf(db, sessionsAfter, from.sessions)) {
    const verify = (some: readonly number[]) => db.readInSteps(() => verifySessions(some, state));
    try {
      faults.add(await verify(sessions));
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Which of them cannot be read?
      for (const session of sessions) faults.add(await faultsOf(() => verify([session])));
    }
    await step(sessions.length, progress({ ...from, sessions: sessions.at(-1) ?? 0 }));
  }
  const damage = await (checking ?? check());
  faults.add(damage.map((message): Fault => ({ kind: 'hash', message })));

  for await (const branches of pagesOf(db, branchesAfter, from.branches)) {
    const verify = (some: readonly number[]) => db.readInSteps(() => verifyBranches(some));
    const found = await faultsOf(() => verify(branches));
    for (const branch of found.length === 0 ? [] : branches) {
      faults.add(await confirmed(() => verify([branch])));
    }
    const last = branches.at(-1) ?? 0;
    await step(branches.length, progress({ sessions: allSessions, branches: last }));
  }

  /** Verifies the rows of a table. One that cannot be read is not read any further. */
  const verifyTable = async <Key>(
    start: Key,
    verify: (after: Key) => Plan<VerifiedRows<Key>>,
    find = faultsOf,
  ): Promise<void> => {
    let next: Key | undefined = start;
    while (next !== undefined) {
      const after: Key = next;
      next = undefined;
      const found = await find(async () => {
        const rows = await db.read(() => verify(after));
        next = rows.next;
        return rows.faults;
      });
      faults.add(found);
      await step(0);
    }
  };
  await verifyTable(journalStart, (after) => verifyJournal(after, state));
  await verifyTable<Uint8Array>(new Uint8Array(), (after) => verifyReceipts(after, state));
  for (const table of strayTables) {
    await verifyTable(-1, (after) => verifyStrays(table, after), confirmed);
  }
  return faults.found;
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

/** Finds faults, of which rows that cannot be read at all are one. */
async function faultsOf(find: FindFaults): Promise<readonly Fault[]> {
  try {
    return await find();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [{ kind: 'hash', message: error.message }];
  }
}
