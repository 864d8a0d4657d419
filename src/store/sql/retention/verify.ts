import { isWaymarkError } from '../../../core/error.ts';
import type { Fault } from '../../contract/store.ts';
import { toReadError } from '../../rules/errors.ts';
import { openJson } from '../content/open-json.ts';
import { homeOf, journalPlace } from '../content/places.ts';
import { all, first, one, type Plan, type SqlValue, statement } from '../database/query.ts';
import { gapsBetween, messageRowId, rowsPerBranch } from '../history/segments.ts';
import { StateReader, type TreeRow, treeOf } from '../history/session-states.ts';
import type { StateContext } from '../history/state-rows.ts';
import { journal } from '../runs/journal.ts';
import { runsOf, toRecord } from '../runs/run-record.ts';
import {
  type SessionRow,
  sessionColumns,
  sessionTables,
  toSessionInfo,
} from '../sessions/session-row.ts';
import { toSnapshot } from '../snapshots/snapshot-row.ts';
import { uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { reachabilityOf } from './gc-reachability.ts';

const selectSession = statement<
  SessionRow & { readonly head: number | null; readonly head_status: number | null }
>(
  'verify_session',
  (d) => `
    SELECT ${d.now} AS now, ${sessionColumns}, z.head, CASE WHEN h.session = z.row_id THEN h.status END AS head_status
    FROM ${sessionTables} WHERE z.row_id = $1`,
);
const selectRun = statement<{ id: Uint8Array; missing: number }>(
  'verify_run',
  `SELECT r.id, CASE WHEN (r.base IS NOT NULL AND b.row_id IS NULL) OR (r.own_snapshot IS NOT NULL AND o.row_id IS NULL)
     OR (r.checkpoint IS NOT NULL AND c.row_id IS NULL) THEN 1 ELSE 0 END AS missing
   FROM @runs r LEFT JOIN @snapshots b ON b.row_id = r.base LEFT JOIN @snapshots o ON o.row_id = r.own_snapshot
   LEFT JOIN @snapshots c ON c.row_id = r.checkpoint WHERE r.session = $1`,
);
const selectCheckpoints = statement<{ checkpoint: number | null }>(
  'verify_checkpoints',
  'SELECT checkpoint FROM @runs WHERE session = $1',
);

/** The faults of one session: hashes, parents, the head, the run. */
export function* verifySession(session: number, context: StateContext): Plan<readonly Fault[]> {
  const found = yield* first(selectSession, session);
  if (found === undefined) return [];
  const { id: sessionId, head, head_status: status } = found;
  const { cipher } = context;
  const faults: Fault[] = [];
  const check = (
    kind: Fault['kind'],
    snapshotId: string | undefined,
    read: () => unknown,
  ): void => {
    const message = problemOf(read);
    if (message === undefined) return;
    faults.push({ kind, sessionId, ...(snapshotId === undefined ? {} : { snapshotId }), message });
  };
  check('hash', undefined, () => toSessionInfo(found, cipher));
  const rows = yield* treeOf(session);
  const reader = new StateReader(rows, context);
  const known = new Set(rows.map((row) => row.row_id));
  const kept = new Set((yield* all(selectCheckpoints, session)).map((row) => row.checkpoint));
  const fault = (kind: Fault['kind'], row: TreeRow, message: string): void => {
    const snapshot = row.id === null ? {} : { snapshotId: uuidText(row.id) };
    faults.push({ kind, sessionId, ...snapshot, message });
  };
  for (const row of rows) {
    // The row of an open run shows what the run has reached; its own hash is written when the run ends.
    const isOpen = row.run_heartbeat !== null && context.cipher.keyId !== undefined;
    const read = isOpen ? undefined : yield* reader.read(row);
    if (read?.kind === 'damaged') fault('hash', row, read.message);
    // A checkpoint has no id and is no snapshot; the state's hash was looked at.
    if (row.id !== null) {
      const reading = { now: row.now, orphaned: false, stateHash: '' };
      check('hash', uuidText(row.id), () => toSnapshot(row, reading, cipher));
    }
    if (row.parent !== null && !known.has(row.parent)) {
      fault('parent', row, 'Its parent is not there.');
    }
    if (row.idx === null && row.row_id !== head && !kept.has(row.row_id)) {
      fault('unreachable', row, 'It is not listed, and neither the head nor a checkpoint.');
    }
  }
  if (head !== null && status !== code.succeeded) {
    faults.push({ kind: 'head', sessionId, message: 'The head is no succeeded snapshot of it.' });
  }
  for (const row of yield* runsOf([session])) {
    check('run', uuidText(row.id), () => toRecord(row, cipher));
  }
  for (const { id, missing } of yield* all(selectRun, session)) {
    if (missing === 0) continue;
    const message = 'The run continues from a snapshot that does not exist.';
    faults.push({ kind: 'run', sessionId, snapshotId: uuidText(id), message });
  }
  return faults;
}

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
  return { faults, next: last && [last.run, last.attempt, last.seq] };
}

/** Why something cannot be read. */
function problemOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    const told = toReadError(error);
    if (isWaymarkError(told) && told.status === 'DATA_LOSS') return told.message;
    throw told;
  }
}

const selectBranches = statement<{ row_id: number }>(
  'verify_branches',
  'SELECT row_id FROM @branches WHERE row_id > $1 ORDER BY row_id LIMIT 100',
);
const countRows = statement<{ count: number }>(
  'verify_rows',
  'SELECT COUNT(*) AS count FROM @messages WHERE id >= $1 AND id < $2',
);

/** The numbers of the branches after one, a hundred at a time. */
export function* branchesAfter(rowId: number): Plan<readonly number[]> {
  return (yield* all(selectBranches, rowId)).map((row) => row.row_id);
}

/** Rows of a branch that no state holds. */
export function* verifyBranch(branch: number): Plan<readonly Fault[]> {
  const need = yield* reachabilityOf(branch);
  if (need === undefined) return [];
  let rows = 0;
  for (const [from, to] of gapsBetween(need.ranges)) {
    rows += (yield* one(countRows, messageRowId(branch, from), messageRowId(branch, to))).count;
  }
  const faults: Fault[] = [];
  if (rows > 0) faults.push(unreachable(`${rows} messages of branch ${branch}`));
  const isHeld = need.hasSnapshots || need.ranges.length > 0 || need.usedViews.length > 0;
  if (!isHeld) faults.push(unreachable(`Branch ${branch}`));
  if (need.unusedViews.length > 0) {
    faults.push(unreachable(`${need.unusedViews.length} views of branch ${branch}`));
  }
  return faults;
}

const countStray = statement<{ messages: number; blobs: number; snapshots: number; runs: number }>(
  'verify_stray',
  `SELECT
     (SELECT COUNT(*) FROM @messages m
      WHERE NOT EXISTS (SELECT 1 FROM @branches b WHERE b.row_id = m.id / ${rowsPerBranch})) AS messages,
     (SELECT COUNT(*) FROM @blobs x
      WHERE NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = x.row_id)
        AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = x.row_id)
        AND NOT EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = x.row_id)
        AND NOT EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = x.row_id)) AS blobs,
     (SELECT COUNT(*) FROM @snapshots s
      WHERE NOT EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = s.session)) AS snapshots,
     (SELECT COUNT(*) FROM @runs r
      WHERE NOT EXISTS (SELECT 1 FROM @sessions z WHERE z.row_id = r.session)) AS runs`,
);

/** Rows that hang on nothing. */
export function* verifyStray(): Plan<readonly Fault[]> {
  const { messages, blobs, snapshots, runs } = yield* one(countStray);
  const faults: Fault[] = [];
  if (messages > 0) faults.push(unreachable(`${messages} messages without a branch`));
  if (blobs > 0) faults.push(unreachable(`${blobs} documents`));
  if (snapshots > 0) faults.push(unreachable(`${snapshots} snapshots without a session`));
  if (runs > 0) faults.push({ kind: 'run', message: `${runs} runs hold no session.` });
  return faults;
}

function unreachable(what: string): Fault {
  return { kind: 'unreachable', message: `${what} are held by nothing.` };
}
