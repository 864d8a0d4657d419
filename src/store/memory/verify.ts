import { isWaymarkError } from '../../core/error.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import type { Link } from '../../session/compact-history.ts';
import type { History } from '../../session/history.ts';
import { isStateHash } from '../../session/session-state.ts';
import type { Fault } from '../contract/store.ts';
import type { Faults } from '../rules/maintenance-steps.ts';
import { allRows } from './rows.ts';
import type { SessionRow, SnapshotRow, Tables } from './tables.ts';

/** The tables that are verified. */
export type VerifiedTables = Pick<Tables, 'snapshots' | 'sessions' | 'runs'>;

/** The problem of a file; `undefined`: none. */
type ProblemOfFile = (hash: string) => string | undefined;

/** Verifies all rows. Yields the number of snapshots after each session, so that turns can run in between. */
export function* verifyTables(
  tables: VerifiedTables,
  faults: Faults,
  problemOfFile: ProblemOfFile,
): Generator<number, void> {
  const files = new Map<string, string | undefined>();
  // Each file is read once.
  const problemOf: ProblemOfFile = (hash) => {
    if (!files.has(hash)) files.set(hash, problemOfFile(hash));
    return files.get(hash);
  };
  const known = new Map<Link, History>();
  for (const session of tables.sessions.values()) {
    // Forks may share messages with the sessions before them.
    if (session.forkedFrom === undefined) known.clear();
    const rows = allRows(session);
    for (const row of rows) faults.add(snapshotFaults(tables, row, known, problemOf));
    faults.add(sessionFaults(tables, session));
    yield rows.length;
  }
  for (const row of tables.snapshots.values()) {
    if (row.index >= 0 || row.session.head === row) continue;
    faults.add([fault('unreachable', row, 'It is not listed, and not the head.')]);
    faults.add(snapshotFaults(tables, row, new Map(), problemOf));
  }
  for (const run of tables.runs.values()) {
    if (run.session.run !== run) faults.add([fault('run', run, 'The run holds no session.')]);
  }
}

function snapshotFaults(
  tables: VerifiedTables,
  row: SnapshotRow,
  known: Map<Link, History>,
  problemOf: ProblemOfFile,
): Fault[] {
  const faults: Fault[] = [];
  const { parent } = row;
  try {
    const { history, custom, artifacts } = row.state;
    // Computed again from the messages.
    const chain = history.wakeAmong(known).chain();
    if (!isStateHash({ history: { chain: () => chain }, custom, artifacts }, row.stateHash)) {
      faults.push(fault('hash', row, 'The state does not fit its hash.'));
    }
    for (const hash of fileHashesIn(artifacts)) {
      const message = problemOf(hash);
      if (message !== undefined) faults.push(fault('hash', row, message));
    }
  } catch (error) {
    if (!isWaymarkError(error)) throw error;
    faults.push(fault('hash', row, error.message));
  }
  if (parent !== undefined && tables.snapshots.get(parent.id) !== parent) {
    faults.push(fault('parent', row, `Its parent "${parent.id}" is not there.`));
  }
  return faults;
}

function sessionFaults(tables: VerifiedTables, session: SessionRow): Fault[] {
  const { head, run } = session;
  const faults: Fault[] = [];
  if (head !== undefined && (head.status !== 'succeeded' || !tables.snapshots.has(head.id))) {
    faults.push(fault('head', head, 'The head is no succeeded snapshot of the store.'));
  }
  if (run !== undefined && tables.runs.get(run.id) !== run) {
    faults.push(fault('run', run, 'The session is held by a run that is not there.'));
  }
  return faults;
}

function fault(
  kind: Fault['kind'],
  { id, session }: { readonly id: string; readonly session: SessionRow },
  message: string,
): Fault {
  return { kind, sessionId: session.id, snapshotId: id, message };
}
