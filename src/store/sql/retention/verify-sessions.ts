import { fileHashesIn, treeHashesIn } from '../../../protocol/artifacts.ts';
import type { Fault } from '../../contract/store.ts';
import type { Cipher } from '../content/cipher.ts';
import { checkFile } from '../content/files.ts';
import { checkTree } from '../content/nodes.ts';
import { problemIn, problemOf } from '../content/open-json.ts';
import { all, type Plan, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { runsOf, toRecord } from '../runs/run-record.ts';
import {
  type SessionRow,
  sessionColumns,
  sessionTables,
  toSessionInfo,
} from '../sessions/sessions.ts';
import {
  joinBranch,
  type PlacedRow,
  placeColumns,
  StateReader,
} from '../snapshots/session-states.ts';
import { type SnapshotRow, snapshotColumns, toSnapshot } from '../snapshots/snapshot-row.ts';
import { uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { snapshotReads } from './pages.ts';

interface CheckedSession extends SessionRow {
  readonly next_index: number;
  readonly head: number | null;
  readonly head_status: number | null;
}

interface CheckedSnapshot extends SnapshotRow, PlacedRow {
  readonly now: number;
  readonly session: number;
  readonly parent: number | null;
  readonly parent_row: number | null;
}

const selectSessions = statement<CheckedSession>(
  'verify_sessions',
  (d) => `
    SELECT ${d.now} AS now, ${sessionColumns}, z.next_index, z.head,
      CASE WHEN h.session = z.row_id THEN h.status END AS head_status
    FROM ${sessionTables} WHERE z.row_id ${d.integers('$1')} ORDER BY z.row_id`,
);
const readsOf = snapshotReads<CheckedSnapshot>(
  'verify',
  200,
  (d) => `
    SELECT ${d.now} AS now, ${snapshotColumns}, ${placeColumns}, s.session, s.parent,
      CASE WHEN p.session = s.session THEN p.row_id END AS parent_row
    FROM @snapshots s ${d.lookup('sessions', 'z', 'z.row_id = s.session')}
    ${d.lookupOptional('snapshots', 'p', 'p.row_id = s.parent')} ${joinBranch(d)}
    LEFT JOIN @runs r ON r.own_snapshot = s.row_id AND r.session = z.row_id`,
);
const selectRuns = statement<{
  session: number;
  id: Uint8Array;
  checkpoint: number | null;
  missing: number;
}>(
  'verify_runs',
  (d) => `
   SELECT r.session, r.id, r.checkpoint,
     CASE WHEN (r.base IS NOT NULL AND b.row_id IS NULL) OR (r.own_snapshot IS NOT NULL AND o.row_id IS NULL)
     OR (r.checkpoint IS NOT NULL AND c.row_id IS NULL) THEN 1 ELSE 0 END AS missing
   FROM @runs r LEFT JOIN @snapshots b ON b.row_id = r.base LEFT JOIN @snapshots o ON o.row_id = r.own_snapshot
   LEFT JOIN @snapshots c ON c.row_id = r.checkpoint WHERE r.session ${d.integers('$1')}`,
);

/** The faults of some sessions: hashes, parents, heads, runs. No statement reads more than about a batch of rows. */
export function* verifySessions(
  sessions: readonly number[],
  context: StateContext,
): Plan<readonly Fault[]> {
  const { cipher } = context;
  const faults: Fault[] = [];
  const list = JSON.stringify(sessions);
  const rows = yield* all(selectSessions, list);
  const runs = yield* all(selectRuns, list);
  const nameOf = new Map(rows.map((row) => [row.row_id, row.id]));
  for (const row of rows) {
    const { id: sessionId, head, head_status: status } = row;
    const message = problemOf(() => toSessionInfo(row, cipher));
    if (message !== undefined) faults.push({ kind: 'hash', sessionId, message });
    if (head !== null && status !== code.succeeded) {
      faults.push({ kind: 'head', sessionId, message: 'The head is no succeeded snapshot of it.' });
    }
  }
  const held = new Set<number | null>([
    ...rows.map((row) => row.head),
    ...runs.map((run) => run.checkpoint),
  ]);
  const reader = new StateReader(context);
  const seen: SeenFiles = { files: new Map(), nodes: new Map() };
  for (const read of readsOf(rows)) {
    const snapshots = yield* all(...read);
    yield* reader.expect(snapshots);
    for (const row of snapshots) {
      const problems = yield* stateProblems(row, reader, seen, context);
      faults.push(...snapshotFaults(row, held, problems, cipher));
    }
  }
  for (const row of yield* runsOf(sessions)) {
    const message = problemOf(() => toRecord(row, cipher));
    const fault = { kind: 'run', sessionId: row.session_id, snapshotId: uuidText(row.id) } as const;
    if (message !== undefined) faults.push({ ...fault, message });
  }
  for (const { session, id, missing } of runs) {
    if (missing === 0) continue;
    const sessionId = nameOf.get(session) ?? '';
    const message = 'The run continues from a snapshot that does not exist.';
    faults.push({ kind: 'run', sessionId, snapshotId: uuidText(id), message });
  }
  return faults;
}

/** The problems of files and nodes that were looked at before, by hash. */
interface SeenFiles {
  readonly files: Map<string, string | undefined>;
  readonly nodes: Map<string, readonly string[]>;
}

/** The problems of a state, and of the files that it names. Each file is read once. */
function* stateProblems(
  row: CheckedSnapshot,
  reader: StateReader,
  { files, nodes }: SeenFiles,
  { cipher }: StateContext,
): Plan<readonly (string | undefined)[]> {
  const problems: (string | undefined)[] = [];
  // The row of an open run shows what the run has reached; its own hash is written when the run ends.
  const isOpen = row.run_heartbeat !== null && cipher.keyId !== undefined;
  try {
    if (!isOpen) yield* reader.read(row);
  } catch (error) {
    problems.push(problemIn(error));
  }
  try {
    for (const hash of fileHashesIn(yield* reader.artifactsOf(row))) {
      if (!files.has(hash)) files.set(hash, yield* checkFile(hash, cipher));
      problems.push(files.get(hash));
    }
    for (const hash of treeHashesIn(yield* reader.artifactsOf(row))) {
      problems.push(...(yield* checkTree(hash, files, nodes, cipher)));
    }
  } catch (error) {
    // A list that cannot be read is a fault already.
    problemIn(error);
  }
  return problems;
}

function snapshotFaults(
  row: CheckedSnapshot,
  held: ReadonlySet<number | null>,
  problems: readonly (string | undefined)[],
  cipher: Cipher,
): readonly Fault[] {
  const faults: Fault[] = [];
  const add = (kind: Fault['kind'], message: string | undefined): void => {
    if (message === undefined) return;
    const snapshotId = row.id === null ? undefined : uuidText(row.id);
    faults.push({ kind, sessionId: row.session_id, ...(snapshotId && { snapshotId }), message });
  };
  for (const problem of problems) add('hash', problem);
  // A checkpoint has no id and is no snapshot; its state was looked at.
  const reading = { now: row.now, orphaned: false, stateHash: '' };
  const own = row.id === null ? undefined : problemOf(() => toSnapshot(row, reading, cipher));
  add('hash', own);
  if (row.parent !== null && row.parent_row === null) add('parent', 'Its parent is not there.');
  if (row.idx === null && !held.has(row.row_id)) {
    add('unreachable', 'It is not listed, and neither the head nor a checkpoint.');
  }
  return faults;
}
