import type { Fault } from '../../../session/store.ts';
import { all, first, one, type Plan, statement } from '../database/query.ts';
import { gapsBetween, rowId, rowsPerBranch } from '../history/segments.ts';
import { StateReader, type TreeRow, treeOf } from '../history/session-states.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { needOf } from './need.ts';

const selectHead = statement<{ id: string; head: number | null; status: number | null }>(
  'verify_head',
  `SELECT z.id, z.head, h.status FROM @sessions z
   LEFT JOIN @snapshots h ON h.no = z.head AND h.session = z.no WHERE z.no = $1`,
);
const selectRun = statement<{ id: Uint8Array; missing: number }>(
  'verify_run',
  `SELECT r.id, CASE WHEN (r.base IS NOT NULL AND b.no IS NULL) OR (r.own IS NOT NULL AND o.no IS NULL)
     OR (r.checkpoint IS NOT NULL AND c.no IS NULL) THEN 1 ELSE 0 END AS missing
   FROM @runs r LEFT JOIN @snapshots b ON b.no = r.base LEFT JOIN @snapshots o ON o.no = r.own
   LEFT JOIN @snapshots c ON c.no = r.checkpoint WHERE r.session = $1`,
);
const selectCheckpoints = statement<{ checkpoint: number | null }>(
  'verify_checkpoints',
  'SELECT checkpoint FROM @runs WHERE session = $1',
);

/** The faults of one session: hashes, parents, the head, the run. */
export function* verifySession(session: number, context: StateContext): Plan<readonly Fault[]> {
  const found = yield* first(selectHead, session);
  if (found === undefined) return [];
  const { id: sessionId, head, status } = found;
  const faults: Fault[] = [];
  const rows = yield* treeOf(session);
  const reader = new StateReader(rows, context);
  const known = new Set(rows.map((row) => row.no));
  const kept = new Set((yield* all(selectCheckpoints, session)).map((row) => row.checkpoint));
  const fault = (kind: Fault['kind'], row: TreeRow, message: string): void => {
    const snapshot = row.id === null ? {} : { snapshotId: uuidText(row.id) };
    faults.push({ kind, sessionId, ...snapshot, message });
  };
  for (const row of rows) {
    const read = yield* reader.read(row);
    if (read.kind === 'damaged') fault('hash', row, read.message);
    if (row.parent !== null && !known.has(row.parent)) {
      fault('parent', row, 'Its parent is not there.');
    }
    if (row.idx === null && row.no !== head && !kept.has(row.no)) {
      fault('unreachable', row, 'It is not listed, and neither the head nor a checkpoint.');
    }
  }
  if (head !== null && status !== code.succeeded) {
    faults.push({ kind: 'head', sessionId, message: 'The head is no succeeded snapshot of it.' });
  }
  for (const { id, missing } of yield* all(selectRun, session)) {
    if (missing === 0) continue;
    const message = 'The run goes on from a snapshot that is not there.';
    faults.push({ kind: 'run', sessionId, snapshotId: uuidText(id), message });
  }
  return faults;
}

const selectBranches = statement<{ no: number }>(
  'verify_branches',
  'SELECT no FROM @branches WHERE no > $1 ORDER BY no LIMIT 100',
);
const countRows = statement<{ count: number }>(
  'verify_rows',
  'SELECT COUNT(*) AS count FROM @messages WHERE id >= $1 AND id < $2',
);

/** The numbers of the branches after one, a hundred at a time. */
export function* branchesAfter(no: number): Plan<readonly number[]> {
  return (yield* all(selectBranches, no)).map((row) => row.no);
}

/** Rows of a branch that no state holds. */
export function* verifyBranch(branch: number): Plan<readonly Fault[]> {
  const need = yield* needOf(branch);
  if (need === undefined) return [];
  let rows = 0;
  for (const [from, to] of gapsBetween(need.ranges)) {
    rows += (yield* one(countRows, rowId(branch, from), rowId(branch, to))).count;
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
      WHERE NOT EXISTS (SELECT 1 FROM @branches b WHERE b.no = m.id / ${rowsPerBranch})) AS messages,
     (SELECT COUNT(*) FROM @blobs x
      WHERE NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.custom = x.no)
        AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.artifacts = x.no)
        AND NOT EXISTS (SELECT 1 FROM @blobs y WHERE y.prev = x.no)
        AND NOT EXISTS (SELECT 1 FROM @blob_parts p WHERE p.part = x.no)) AS blobs,
     (SELECT COUNT(*) FROM @snapshots s
      WHERE NOT EXISTS (SELECT 1 FROM @sessions z WHERE z.no = s.session)) AS snapshots,
     (SELECT COUNT(*) FROM @runs r
      WHERE NOT EXISTS (SELECT 1 FROM @sessions z WHERE z.no = r.session)) AS runs`,
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
