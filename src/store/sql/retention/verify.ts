import { invalid } from '../../../core/error.ts';
import type { Fault, MaintenanceProgress, VerifyOptions } from '../../contract/store.ts';
import { createFaults, createSteps } from '../../rules/maintenance-steps.ts';
import { openJson, problemIn, problemOf } from '../content/open-json.ts';
import {
  keyOf,
  type SealedRow,
  type SealedTable,
  sealedTables,
  selectAfter,
} from '../content/sealed-tables.ts';
import { checkForward } from '../database/check-forward.ts';
import { all, one, type Plan, type SqlValue, statement } from '../database/query.ts';
import { rowsPerBranch } from '../history/segments.ts';
import type { StateContext } from '../history/state-rows.ts';
import type { SqlContext } from '../sql-context.ts';
import { uuidText } from '../values/bytes.ts';
import { gapsOf, reachabilityNow } from './gc-reachability.ts';
import { pagesOf, readInSteps, sessionsAfter } from './pages.ts';
import { verifySessions } from './verify-sessions.ts';

/** The faults of some rows, and the key after which to continue; `undefined`: there are no more rows. */
interface VerifiedRows {
  readonly faults: readonly Fault[];
  readonly next: readonly SqlValue[] | undefined;
}

/** A table that is verified row by row, apart from the sessions. */
interface RowCheck {
  /** A key before that of any row. */
  readonly start: readonly SqlValue[];
  /** Verifies some rows after a key. */
  verify(after: readonly SqlValue[], context: StateContext): Plan<VerifiedRows>;
}

// Branches --------------------------------------------------------------------------------------------

const selectBranches = statement<{ row_id: number }>(
  'verify_branches',
  'SELECT row_id FROM @branches WHERE row_id > $1 ORDER BY row_id LIMIT 20',
);
const countRows = statement<{ branch: number; count: number }>(
  'verify_rows',
  (d) => `
    SELECT m.id / ${rowsPerBranch} AS branch, COUNT(*) AS count FROM ${d.messageRanges('$1')} GROUP BY 1`,
);

/** The numbers of the branches after one, a few at a time. */
function* branchesAfter(rowId: number): Plan<readonly number[]> {
  return (yield* all(selectBranches, rowId)).map((row) => row.row_id);
}

/** Finds branches, and their views and messages, that nothing holds. */
function* verifyBranches(branches: readonly number[]): Plan<readonly Fault[]> {
  const needs = yield* reachabilityNow(branches);
  const stray = yield* all(countRows, JSON.stringify(needs.flatMap(gapsOf)));
  return [
    ...stray.map(({ branch, count }) => unreachable(`${count} messages of branch ${branch}`)),
    ...needs.flatMap(({ row_id: branch, isHeld, unusedViews: { length: views } }) => [
      ...(isHeld ? [] : [unreachable(`Branch ${branch}`)]),
      ...(views === 0 ? [] : [unreachable(`${views} views of branch ${branch}`)]),
    ]),
  ];
}

// Rows of runs ----------------------------------------------------------------------------------------

/** Checks that what is stored of runs, besides their states, can be read. */
function contentCheck(table: SealedTable): RowCheck {
  const select = statement<SealedRow>(`verify_${table.name}`, `${selectAfter(table)} LIMIT 100`);
  return {
    start: Object.values(table.keys),
    *verify(after, { cipher }) {
      const rows = yield* all(select, ...after);
      const faults = rows.flatMap((row) =>
        Object.entries(table.places).flatMap(([column, placeOf]) => {
          const value = row[column] ?? null;
          if (value === null) return [];
          const message = problemOf(() => openJson(value, placeOf(row), cipher));
          return message === undefined ? [] : [runFault(row, message)];
        }),
      );
      const last = rows.at(-1);
      const next = last && keyOf(table, last);
      if (next !== undefined) checkForward(next, after);
      return { faults, next };
    },
  };
}

function runFault({ run, session_id: sessionId }: SealedRow, message: string): Fault {
  const snapshotId = uuidText(run as Uint8Array);
  return { kind: 'run', ...(typeof sessionId === 'string' && { sessionId }), snapshotId, message };
}

/** The content of runs that have ended, and their events, steps and inboxes. */
const contentChecks: readonly RowCheck[] = sealedTables
  .filter(({ name }) => name === 'journal' || name === 'requests' || name === 'dead_runs')
  .map(contentCheck);

// Rows that hang on nothing ---------------------------------------------------------------------------

/** Counts, among the rows of a table, the ones that nothing holds. */
function strayCheck(
  table: string,
  key: string,
  isHeld: string,
  fault: (count: number) => Fault,
): RowCheck {
  const select = statement<{ readonly count: number; readonly last: number | null }>(
    `verify_stray_${table}`,
    `SELECT COUNT(CASE WHEN ${isHeld} THEN NULL ELSE 1 END) AS count, MAX(x.${key}) AS last
     FROM (SELECT * FROM @${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT 500) x`,
  );
  return {
    start: [-1],
    *verify(after) {
      const { count, last } = yield* one(select, ...after);
      if (last !== null) checkForward([last], after);
      return { faults: count > 0 ? [fault(count)] : [], next: last === null ? undefined : [last] };
    },
  };
}

const hasSession = 'EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = x.session)';

const strayChecks: readonly RowCheck[] = [
  strayCheck(
    'messages',
    'id',
    `EXISTS (SELECT 1 FROM @branches b WHERE b.row_id = x.id / ${rowsPerBranch})`,
    (count) => unreachable(`${count} messages without a branch`),
  ),
  strayCheck(
    'blobs',
    'row_id',
    `EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = x.row_id)
     OR EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = x.row_id)
     OR EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = x.row_id)
     OR EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = x.row_id)`,
    (count) => unreachable(`${count} documents`),
  ),
  strayCheck('snapshots', 'row_id', hasSession, (count) =>
    unreachable(`${count} snapshots without a session`),
  ),
  strayCheck('runs', 'session', hasSession, (count) => ({
    kind: 'run',
    message: `${count} runs hold no session.`,
  })),
];

function unreachable(what: string): Fault {
  return { kind: 'unreachable', message: `${what} are held by nothing.` };
}

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
    throw invalid(
      `The cursor ${shown} is not one that verify reported. Pass the last one that onProgress got from this store.`,
    );
  }
  return { sessions: Number(sessions), branches: Number(branches) };
}

/** Finds faults, of which rows that cannot be read at all are one. */
async function faultsOf(find: FindFaults): Promise<readonly Fault[]> {
  return await find().catch((error: unknown) => [{ kind: 'hash', message: problemIn(error) }]);
}
