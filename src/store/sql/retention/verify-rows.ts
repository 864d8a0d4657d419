import type { Fault } from '../../contract/store.ts';
import { openJson, problemOf } from '../content/open-json.ts';
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
import { uuidText } from '../values/bytes.ts';
import { gapsOf, reachabilityNow } from './gc-reachability.ts';

/** The faults of some rows, and the key after which to continue; `undefined`: there are no more rows. */
interface VerifiedRows {
  readonly faults: readonly Fault[];
  readonly next: readonly SqlValue[] | undefined;
}

/** A table that is verified row by row, apart from the sessions. */
export interface RowCheck {
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
export function* branchesAfter(rowId: number): Plan<readonly number[]> {
  return (yield* all(selectBranches, rowId)).map((row) => row.row_id);
}

/** Finds branches, and their views and messages, that nothing holds. */
export function* verifyBranches(branches: readonly number[]): Plan<readonly Fault[]> {
  const needs = yield* reachabilityNow(branches);
  const stray = yield* all(countRows, JSON.stringify(needs.flatMap(gapsOf)));
  return [
    ...stray.map(({ branch, count }) => unreachable(`${count} messages of branch ${branch}`)),
    ...needs.flatMap(({ branch, isHeld, unusedViews: { length: views } }) => [
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
export const contentChecks: readonly RowCheck[] = sealedTables
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

export const strayChecks: readonly RowCheck[] = [
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
