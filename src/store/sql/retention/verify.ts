import type { Fault } from '../../contract/store.ts';
import { openJson } from '../content/open-json.ts';
import { homeOf, journalPlace, receiptPlace } from '../content/places.ts';
import { checkForward } from '../database/check-forward.ts';
import {
  all,
  first,
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
import {
  gapsOf,
  type Reachability,
  reachabilityNow,
  reachabilityOfLong,
} from './gc-reachability.ts';
import { problemOf } from './problem-of.ts';

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
export type JournalAt = readonly [run: Uint8Array, attempt: number, seq: number];

export const journalStart: JournalAt = [new Uint8Array(), -2, -1];

const selectJournal = statement<JournalRow>(
  'verify_journal',
  `SELECT j.run, j.attempt, j.seq, j.last, j.body, z.owner, z.agent, z.id AS session_id
   FROM @journal j JOIN @sessions z ON z.row_id = j.session
   WHERE (j.run, j.attempt, j.seq) > ($1, $2, $3) AND j.attempt <> ${journal.end}
   ORDER BY j.run, j.attempt, j.seq LIMIT 100`,
);

/** The faults of some events and steps, and where to continue. */
export function* verifyJournal(
  after: JournalAt,
  { cipher }: StateContext,
): Plan<{ readonly faults: readonly Fault[]; readonly next: JournalAt | undefined }> {
  const rows = yield* all(selectJournal, ...after);
  const faults = rows.flatMap((row): readonly Fault[] => {
    const place = journalPlace(homeOf(row), row.run, row);
    const message = problemOf(() => openJson(row.body, place, cipher));
    if (message === undefined) return [];
    return [{ kind: 'run', sessionId: row.session_id, snapshotId: uuidText(row.run), message }];
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

/** The faults of some receipts of requests, and the key to continue after. */
export function* verifyReceipts(
  after: Uint8Array,
  { cipher }: StateContext,
): Plan<{ readonly faults: readonly Fault[]; readonly next: Uint8Array | undefined }> {
  const rows = yield* all(selectReceipts, after);
  const faults = rows.flatMap(({ key, run, receipt, session_id }): readonly Fault[] => {
    const message = problemOf(() => openJson(receipt, receiptPlace(hexOf(key), run), cipher));
    if (message === undefined) return [];
    return [{ kind: 'run', sessionId: session_id, snapshotId: uuidText(run), message }];
  });
  const next = rows.at(-1)?.key;
  if (next !== undefined) checkForward([next], [after]);
  return { faults, next };
}

const selectBranches = statement<{ row_id: number }>(
  'verify_branches',
  'SELECT row_id FROM @branches WHERE row_id > $1 ORDER BY row_id LIMIT 20',
);
const countRows = statement<{ count: number }>(
  'verify_rows',
  (d) => `SELECT COUNT(*) AS count FROM ${d.messageRanges('$1')}`,
);
const selectRow = statement<{ id: number }>(
  'verify_row',
  (d) => `SELECT m.id FROM ${d.messageRanges('$1')} LIMIT 1`,
);

/** The numbers of the branches after one, a few at a time. */
export function* branchesAfter(rowId: number): Plan<readonly number[]> {
  return (yield* all(selectBranches, rowId)).map((row) => row.row_id);
}

/** What there is of a branch although nothing holds it. */
export function* verifyBranch(branch: number): Plan<readonly Fault[]> {
  const need = yield* reachabilityOfLong(branch);
  if (need === undefined) return [];
  const { count } = yield* one(countRows, JSON.stringify(gapsOf(need)));
  const faults: Fault[] = [];
  if (count > 0) faults.push(unreachable(`${count} messages of branch ${branch}`));
  if (!need.isHeld) faults.push(unreachable(`Branch ${branch}`));
  if (need.unusedViews.length > 0) {
    faults.push(unreachable(`${need.unusedViews.length} views of branch ${branch}`));
  }
  return faults;
}

/** Looks at some branches: which have to be looked at again, one by one, and which are left because they were too much at once. */
export function* doubtfulBranches(branches: readonly number[]): Plan<{
  readonly doubtful: readonly number[];
  readonly left: readonly number[];
}> {
  const { needs, left, long } = yield* reachabilityNow(branches);
  const stray = yield* first(selectRow, JSON.stringify(needs.flatMap(gapsOf)));
  const isDoubtful = ({ isHeld, unusedViews }: Reachability): boolean =>
    stray !== undefined || !isHeld || unusedViews.length > 0;
  const doubtful = needs.filter(isDoubtful).map((need) => need.branch);
  return { doubtful: long === undefined ? doubtful : [...doubtful, long], left };
}

// Rows that hang on nothing ------------------------------------------------------------------------

interface StrayRows {
  readonly count: number;
  /** The last row that was looked at. */
  readonly last: number | null;
}

/** Counts, among the rows of a table after a key, those that nothing holds. */
function strayRows(table: string, key: string, isHeld: string): Statement<StrayRows> {
  return statement(
    `verify_stray_${table}`,
    `SELECT COUNT(CASE WHEN ${isHeld} THEN NULL ELSE 1 END) AS count, MAX(x.${key}) AS last
     FROM (SELECT * FROM @${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT 500) x`,
  );
}

const strays: readonly {
  readonly rows: Statement<StrayRows>;
  readonly fault: (count: number) => Fault;
}[] = [
  {
    rows: strayRows(
      'messages',
      'id',
      `EXISTS (SELECT 1 FROM @branches b WHERE b.row_id = x.id / ${rowsPerBranch})`,
    ),
    fault: (count) => unreachable(`${count} messages without a branch`),
  },
  {
    rows: strayRows(
      'blobs',
      'row_id',
      `EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = x.row_id)
       OR EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = x.row_id)
       OR EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = x.row_id)
       OR EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = x.row_id)`,
    ),
    fault: (count) => unreachable(`${count} documents`),
  },
  {
    rows: strayRows(
      'snapshots',
      'row_id',
      'EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = x.session)',
    ),
    fault: (count) => unreachable(`${count} snapshots without a session`),
  },
  {
    rows: strayRows(
      'runs',
      'session',
      'EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = x.session)',
    ),
    fault: (count) => ({ kind: 'run', message: `${count} runs hold no session.` }),
  },
];

/** What the rows of one table after a key show. */
export interface StrayBatch {
  readonly faults: readonly Fault[];
  readonly next: number | undefined;
}

/** The tables whose rows hang on others. */
export const strayTables: number = strays.length;

/** Rows of a table, by its place among {@link strayTables}, that hang on nothing; a batch of them. */
export function* verifyStrays(table: number, after: number): Plan<StrayBatch> {
  const stray = strays[table];
  if (stray === undefined) return { faults: [], next: undefined };
  const { count, last } = yield* one(stray.rows, after);
  if (last !== null) checkForward([last], [after]);
  return { faults: count > 0 ? [stray.fault(count)] : [], next: last ?? undefined };
}

function unreachable(what: string): Fault {
  return { kind: 'unreachable', message: `${what} are held by nothing.` };
}
