import { WaymarkError } from '../../../core/error.ts';
import type { Fault, MaintenanceProgress, VerifyOptions } from '../../contract/store.ts';
import { createFaults, createSteps } from '../../rules/maintenance-steps.ts';
import { problemIn } from '../content/open-json.ts';
import { one, statement } from '../database/query.ts';
import type { SqlContext } from '../sql-context.ts';
import { pagesOf, readInSteps, sessionsAfter } from './pages.ts';
import {
  branchesAfter,
  contentChecks,
  type RowCheck,
  strayChecks,
  verifyBranches,
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

type RowKey = RowCheck['start'];
type FindFaults = () => Promise<readonly Fault[]>;

/** Looks at everything in a store, in small steps. */
export async function verifyStore(
  { db, state, gcScheduler }: SqlContext,
  options: VerifyOptions = {},
): Promise<readonly Fault[]> {
  const step = createSteps(options);
  const from = fromCursor(options.cursor);
  // Damage may stop the garbage collection, and is reported below.
  const collect = (): Promise<void> => gcScheduler.now(db).catch((error) => void problemIn(error));
  await collect();
  const { count: total } = await db.read(() => one(countAll, from.sessions, from.branches));
  const progress = ({ sessions, branches }: Cursor): MaintenanceProgress => ({
    total,
    cursor: `${sessions}.${branches}`,
  });
  const faults = createFaults(options);

  /** Finds faults again, because turns change rows and leave garbage behind meanwhile: it is a fault only if it stays. */
  const confirmed = async (find: FindFaults): Promise<readonly Fault[]> => {
    let found = await faultsOf(find);
    for (let tries = 2; tries > 0 && found.length > 0; tries--) {
      await collect();
      const again = new Set((await faultsOf(find)).map((fault) => JSON.stringify(fault)));
      found = found.filter((fault) => again.has(JSON.stringify(fault)));
    }
    return found;
  };

  /** Verifies some rows together, and if there are faults, each by itself. */
  const verifyEach = async (
    rows: readonly number[],
    verify: (some: readonly number[]) => Promise<readonly Fault[]>,
  ): Promise<void> => {
    const found = await faultsOf(() => verify(rows));
    for (const row of found.length === 0 ? [] : rows) {
      faults.add(await confirmed(() => verify([row])));
    }
  };

  // Its faults are reported after the last session, so a call that was stopped before that is followed by one that checks again.
  const isChecked = from.sessions === allSessions;
  const check = async () => (isChecked ? [] : ((await db.check?.(options.signal)) ?? []));
  const checking = db.checksAside === true ? check() : undefined;
  // If the sessions cannot be read, that is the error.
  checking?.catch(() => {});
  for await (const sessions of pagesOf(db, sessionsAfter, from.sessions)) {
    await verifyEach(sessions, (some) => readInSteps(db, () => verifySessions(some, state)));
    await step(sessions.length, progress({ ...from, sessions: sessions.at(-1) ?? 0 }));
  }
  const damage = await (checking ?? check());
  faults.add(damage.map((message): Fault => ({ kind: 'hash', message })));

  for await (const branches of pagesOf(db, branchesAfter, from.branches)) {
    await verifyEach(branches, (some) => readInSteps(db, () => verifyBranches(some)));
    const last = branches.at(-1) ?? 0;
    await step(branches.length, progress({ sessions: allSessions, branches: last }));
  }

  /** Verifies the rows of a table. One that cannot be read is not read any further. */
  const verifyTable = async ({ start, verify }: RowCheck, find = faultsOf): Promise<void> => {
    for (let next: RowKey | undefined = start; next !== undefined; ) {
      const after: RowKey = next;
      next = undefined;
      const found = await find(async () => {
        const rows = await db.read(() => verify(after, state));
        next = rows.next;
        return rows.faults;
      });
      faults.add(found);
      await step(0);
    }
  };
  for (const table of contentChecks) await verifyTable(table);
  for (const table of strayChecks) await verifyTable(table, confirmed);
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

/** Finds faults, of which rows that cannot be read at all are one. */
async function faultsOf(find: FindFaults): Promise<readonly Fault[]> {
  return await find().catch((error: unknown) => [{ kind: 'hash', message: problemIn(error) }]);
}
