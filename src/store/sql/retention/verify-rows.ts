import type { Fault } from '../../contract/store.ts';
import { openJson, problemOf } from '../content/open-json.ts';
import { homeOf, journalPlace, receiptPlace } from '../content/places.ts';
import { checkForward } from '../database/check-forward.ts';
import {
  all,
  one,
  type Plan,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import { rowsPerBranch } from '../history/segments.ts';
import type { StateContext } from '../history/state-rows.ts';
import { journal } from '../runs/journal.ts';
import { hexOf, uuidText } from '../values/bytes.ts';
import { gapsOf, reachabilityNow } from './gc-reachability.ts';

/** The faults of some rows, and the key after which to continue; `undefined`: there are no more rows. */
export interface VerifiedRows<Key> {
  readonly faults: readonly Fault[];
  readonly next: Key | undefined;
}

// Runs ------------------------------------------------------------------------------------------------

interface JournalRow {
  readonly run: Uint8Array;
  readonly attempt: number;
  readonly seq: number;
  readonly last: number;
  readonly body: SqlValue;
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
}

/** The place of a row in the journal. */
type JournalAt = readonly [run: Uint8Array, attempt: number, seq: number];

export const journalStart: JournalAt = [new Uint8Array(), -2, -1];

const selectJournal = statement<JournalRow>(
  'verify_journal',
  `SELECT j.run, j.attempt, j.seq, j.last, j.body, z.owner, z.agent, z.id AS session_id
   FROM @journal j JOIN @sessions z ON z.row_id = j.session
   WHERE (j.run, j.attempt, j.seq) > ($1, $2, $3) AND j.attempt <> ${journal.end}
   ORDER BY j.run, j.attempt, j.seq LIMIT 100`,
);

/** Verifies some events and steps. */
export function* verifyJournal(
  after: JournalAt,
  { cipher }: StateContext,
): Plan<VerifiedRows<JournalAt>> {
  const rows = yield* all(selectJournal, ...after);
  const faults = rows.flatMap((row) => {
    const place = journalPlace(homeOf(row), row.run, row);
    return runFaults(row, () => openJson(row.body, place, cipher));
  });
  const last = rows.at(-1);
  if (last === undefined) return { faults, next: undefined };
  const next: JournalAt = [last.run, last.attempt, last.seq];
  checkForward(next, after);
  return { faults, next };
}

const selectReceipts = statement<{
  readonly key: Uint8Array;
  readonly run: Uint8Array;
  readonly receipt: SqlValue;
  readonly session_id: string;
}>(
  'verify_receipts',
  `SELECT q.key, q.run, q.receipt, z.id AS session_id FROM @requests q JOIN @sessions z ON z.row_id = q.session
   WHERE q.key > $1 AND q.receipt IS NOT NULL ORDER BY q.key LIMIT 100`,
);

/** Verifies some receipts of requests. */
export function* verifyReceipts(
  after: Uint8Array,
  { cipher }: StateContext,
): Plan<VerifiedRows<Uint8Array>> {
  const rows = yield* all(selectReceipts, after);
  const faults = rows.flatMap((row) => {
    const place = receiptPlace(hexOf(row.key), row.run);
    return runFaults(row, () => openJson(row.receipt, place, cipher));
  });
  const next = rows.at(-1)?.key;
  if (next !== undefined) checkForward([next], [after]);
  return { faults, next };
}

function runFaults(
  { run, session_id: sessionId }: { readonly run: Uint8Array; readonly session_id: string },
  read: () => unknown,
): readonly Fault[] {
  const message = problemOf(read);
  return message === undefined
    ? []
    : [{ kind: 'run', sessionId, snapshotId: uuidText(run), message }];
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

// Rows that hang on nothing ---------------------------------------------------------------------------

/** A table whose rows hang on others. */
export interface StrayTable {
  /** Counts, among the rows after a key, the ones that nothing holds, and gives the last row that was looked at. */
  readonly rows: Statement<{ readonly count: number; readonly last: number | null }>;
  readonly fault: (count: number) => Fault;
}

function strayTable(
  table: string,
  key: string,
  isHeld: string,
  fault: StrayTable['fault'],
): StrayTable {
  const rows: StrayTable['rows'] = statement(
    `verify_stray_${table}`,
    `SELECT COUNT(CASE WHEN ${isHeld} THEN NULL ELSE 1 END) AS count, MAX(x.${key}) AS last
     FROM (SELECT * FROM @${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT 500) x`,
  );
  return { rows, fault };
}

const hasSession = 'EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = x.session)';

export const strayTables: readonly StrayTable[] = [
  strayTable(
    'messages',
    'id',
    `EXISTS (SELECT 1 FROM @branches b WHERE b.row_id = x.id / ${rowsPerBranch})`,
    (count) => unreachable(`${count} messages without a branch`),
  ),
  strayTable(
    'blobs',
    'row_id',
    `EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = x.row_id)
     OR EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = x.row_id)
     OR EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = x.row_id)
     OR EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = x.row_id)`,
    (count) => unreachable(`${count} documents`),
  ),
  strayTable('snapshots', 'row_id', hasSession, (count) =>
    unreachable(`${count} snapshots without a session`),
  ),
  strayTable('runs', 'session', hasSession, (count) => ({
    kind: 'run',
    message: `${count} runs hold no session.`,
  })),
];

/** Finds, among some rows of a table, the ones that hang on nothing. */
export function* verifyStrays(
  { rows, fault }: StrayTable,
  after: number,
): Plan<VerifiedRows<number>> {
  const { count, last } = yield* one(rows, after);
  if (last !== null) checkForward([last], [after]);
  return { faults: count > 0 ? [fault(count)] : [], next: last ?? undefined };
}

function unreachable(what: string): Fault {
  return { kind: 'unreachable', message: `${what} are held by nothing.` };
}
