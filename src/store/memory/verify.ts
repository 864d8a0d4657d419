import { isWaymarkError } from '../../core/error.ts';
import { fileHashesIn } from '../../protocol/file-part.ts';
import { KnownChains } from '../../session/known-chains.ts';
import { isStateHash, type SessionState } from '../../session/session-state.ts';
import type { Fault } from '../contract/store.ts';
import type { Faults } from '../rules/maintenance-steps.ts';
import { allRows } from './rows.ts';
import type { SessionRow, SnapshotRow, Tables } from './tables.ts';

/** How many messages are hashed in one step. */
const batch = 32;

/** The tables that are verified. */
export type VerifiedTables = Pick<Tables, 'snapshots' | 'sessions' | 'runs'>;

/** Reads the artifacts of a snapshot. Throws what is wrong with them. */
type ArtifactsOf = (row: SnapshotRow) => SessionState['artifacts'];

/** What is wrong with a file; `undefined` when nothing is. */
type ProblemOfFile = (hash: string) => string | undefined;

/**
 * Walks everything and says what does not fit. Turns may run between two steps; each step yields how many snapshots it
 * has completed. Messages are read session by session, so that those of one session at a time are in memory.
 */
export function* verifyInSteps(
  tables: VerifiedTables,
  faults: Faults,
  artifactsOf: ArtifactsOf = ({ state }) => state.artifacts,
  problemOfFile: ProblemOfFile = () => undefined,
): Generator<number, void> {
  const files = new Map<string, string | undefined>();
  // Each file is read once.
  const problemOf: ProblemOfFile = (hash) => {
    if (!files.has(hash)) files.set(hash, problemOfFile(hash));
    return files.get(hash);
  };
  const known = new KnownChains();
  for (const session of tables.sessions.values()) {
    // Forks may begin with messages of the sessions before.
    if (session.forkedFrom === undefined) known.clear();
    for (const row of allRows(session)) {
      yield* verifySnapshot(tables, row, { known, faults, artifactsOf, problemOf });
    }
    faults.add(sessionFaults(tables, session));
    yield 0;
  }
  let seen = 0;
  for (const row of tables.snapshots.values()) {
    if (row.index < 0 && row.session.head !== row) {
      faults.add([fault('unreachable', row, 'It is not listed, and not the head.')]);
      yield* verifySnapshot(tables, row, { known, faults, artifactsOf, problemOf });
    }
    if (++seen % batch === 0) yield 0;
  }
  for (const run of tables.runs.values()) {
    if (run.session.run !== run) faults.add([fault('run', run, 'The run holds no session.')]);
  }
}

function* verifySnapshot(
  tables: VerifiedTables,
  row: SnapshotRow,
  {
    known,
    faults,
    artifactsOf,
    problemOf,
  }: {
    readonly known: KnownChains;
    readonly faults: Faults;
    readonly artifactsOf: ArtifactsOf;
    readonly problemOf: ProblemOfFile;
  },
): Generator<number, void> {
  // It may have been deleted in the meantime.
  const isThere = (): boolean => tables.snapshots.get(row.id) === row;
  if (!isThere()) return;
  const steps = row.state.history.rechainInSteps(known, batch);
  let chain = steps.next();
  for (; chain.done !== true; chain = steps.next()) yield 0;
  if (isThere()) faults.add(snapshotFaults(tables, row, chain.value, artifactsOf));
  if (isThere()) faults.add(fileFaults(row, artifactsOf, problemOf));
  yield 1;
}

function snapshotFaults(
  tables: VerifiedTables,
  row: SnapshotRow,
  chain: string,
  artifactsOf: ArtifactsOf,
): Fault[] {
  const faults: Fault[] = [];
  const { parent } = row;
  try {
    const { custom } = row.state;
    const artifacts = artifactsOf(row);
    if (!isStateHash({ history: { chain: () => chain }, custom, artifacts }, row.stateHash)) {
      faults.push(fault('hash', row, 'The state does not fit its hash.'));
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

/** Files of a snapshot that are missing or damaged. */
function fileFaults(row: SnapshotRow, artifactsOf: ArtifactsOf, problemOf: ProblemOfFile): Fault[] {
  let hashes: readonly string[];
  try {
    hashes = fileHashesIn(artifactsOf(row));
  } catch (error) {
    // Artifacts that cannot be read are a fault by themselves.
    if (isWaymarkError(error)) return [];
    throw error;
  }
  return hashes.flatMap((hash) => {
    const message = problemOf(hash);
    return message === undefined ? [] : [fault('hash', row, message)];
  });
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
