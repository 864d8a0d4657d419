import { isWaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Link } from '../../session/compact-history.ts';
import { type ExportRow, toSessionExport } from '../../session/export-session.ts';
import type { History } from '../../session/history.ts';
import {
  fromSessionExport,
  type ImportedSession,
  type ImportRow,
  renewIds,
} from '../../session/import-session.ts';
import { isStateHash } from '../../session/session-state.ts';
import type { Fault, MaintenanceSupport, Scope } from '../contract/store.ts';
import { sessionExists } from '../rules/errors.ts';
import { createFaults, createSteps } from '../rules/maintenance-steps.ts';
import { treeProblems } from '../rules/tree-problems.ts';
import { batch, createPruning } from './prune.ts';
import { activePath, toMetadata, toSessionInfo } from './reading.ts';
import { addSnapshot, allRows, createSessionRow, dropSessionRows, turnFieldsOf } from './rows.ts';
import {
  type FileTable,
  findSession,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

export function maintenanceSupport(tables: Tables): MaintenanceSupport {
  return {
    async prune(policy, scope, options) {
      const step = createSteps(options);
      const pruning = createPruning(tables, policy, scope);
      for (const session of tables.sessions.values()) {
        if (pruning.prune([session]) > 0) await step();
      }
      while (pruning.spent.length > 0) {
        pruning.dropSome();
        await step(0);
      }
      return pruning.report;
    },
    async eraseOwner(owner, options) {
      const step = createSteps(options);
      let erased = 0;
      // Before its sessions, each of which would look for its part.
      tables.memory.eraseOwner(owner);
      // Sessions that are created between two steps are deleted as well.
      for (let some = someOf(tables, owner); some.size > 0; some = someOf(tables, owner)) {
        dropSessionRows(tables, some);
        erased += some.size;
        await step(some.size);
      }
      tables.spend.eraseOwner(owner);
      return erased;
    },
    async verify(options) {
      const step = createSteps(options);
      const faults = createFaults(options);
      for (const { snapshots, found } of verifyTables(tables, tables.files)) {
        faults.add(found);
        await step(snapshots);
      }
      return faults.found;
    },
    async exportSession(scope, sessionId) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return undefined;
      const now = tables.clock.now();
      return toSessionExport(toSessionInfo(session, now), exportRows(session, now));
    },
    importSession: async (scope, document, options = {}) =>
      toSessionInfo(importSession(tables, scope, document, options), tables.clock.now()),
  };
}

/** The rows of a session in an export. Their histories share the messages that they have in common. */
export function* exportRows(session: SessionRow, now: number): Iterable<ExportRow> {
  const known = new Map<Link, History>();
  const path = activePath(session);
  for (const row of allRows(session)) {
    if (row.status === 'pending') continue;
    const { state } = row;
    const history = state.history.wakeAmong(known);
    yield {
      snapshot: toMetadata(row, now, path),
      totals: row.totals,
      state: { ...state, history },
    };
  }
}

/** Puts a session from a document into the store, under its own id or another. */
function importSession(
  tables: Tables,
  scope: Scope,
  document: unknown,
  options: { readonly sessionId?: string },
): SessionRow {
  const read = fromSessionExport(document);
  const { sessionId = read.session.sessionId } = options;
  if (findSession(tables, scope, sessionId) !== undefined) throw sessionExists(sessionId);
  const isTaken = read.snapshots.some(({ snapshot: { snapshotId } }) => {
    return tables.snapshots.has(snapshotId) || tables.runs.has(snapshotId);
  });
  const imported = isTaken ? renewIds(read, tables.newId) : read;
  const session = insertSession(tables, scope, sessionId, imported);
  for (const row of imported.snapshots) insertSnapshot(tables, session, row);
  session.head = tables.snapshots.get(imported.session.headId ?? '');
  return session;
}

function insertSession(
  tables: Tables,
  scope: Scope,
  sessionId: string,
  { session: { title, metadata, createdAt, updatedAt, ...origin } }: ImportedSession,
): SessionRow {
  const session = createSessionRow(tables, scope, sessionId, {
    ...origin,
    createdAt: Date.parse(createdAt),
  });
  session.updatedAt = Date.parse(updatedAt);
  if (title !== undefined) session.title = title;
  if (metadata !== undefined) session.metadata = metadata;
  return session;
}

function insertSnapshot(
  tables: Tables,
  session: SessionRow,
  { snapshot, totals, state }: ImportRow,
): void {
  const { snapshotId: id, index, turnIndex, event, status, stateHash, label } = snapshot;
  const row = addSnapshot(tables, {
    id,
    session,
    parent: tables.snapshots.get(snapshot.parentId ?? ''),
    index,
    turnIndex,
    event,
    status,
    ...turnFieldsOf(snapshot),
    createdAt: Date.parse(snapshot.createdAt),
    updatedAt: Date.parse(snapshot.updatedAt),
    state,
    stateHash,
    ...defined({ label, totals }),
  });
  if (row.index < 0) return;
  session.listed.push(row);
  session.nextIndex = row.index + 1;
}

function someOf(tables: Tables, owner: string): Set<SessionRow> {
  const found = new Set<SessionRow>();
  for (const session of tables.sessions.values()) {
    if (session.scope.owner === owner) found.add(session);
    if (found.size === batch) break;
  }
  return found;
}

/** How stored files are verified. */
type FileReading = Pick<FileTable, 'problemOf' | 'node'>;

/** The faults of the files and the tree that artifacts name. */
type ProblemsOf = (artifacts: readonly Artifact[]) => readonly string[];

/** Verifies the rows of one session after another, then those that belong to none. Reads each file once. */
export function* verifyTables(
  tables: Tables,
  reading: FileReading,
): Generator<{ readonly snapshots: number; readonly found: readonly Fault[] }, void> {
  const problemOf = problemsIn(reading);
  const known = new Map<Link, History>();
  for (const session of tables.sessions.values()) {
    // Forks may share messages with the sessions before them.
    if (session.forkedFrom === undefined) known.clear();
    const rows = allRows(session);
    const found = rows.flatMap((row) => snapshotFaults(tables, row, known, problemOf));
    yield { snapshots: rows.length, found: [...found, ...sessionFaults(tables, session)] };
  }
  const found: Fault[] = [];
  for (const row of tables.snapshots.values()) {
    if (row.index >= 0 || row.session.head === row) continue;
    found.push(fault('unreachable', row, 'It is not listed, and not the head.'));
    found.push(...snapshotFaults(tables, row, new Map(), problemOf));
  }
  for (const run of tables.runs.values()) {
    if (run.session.run !== run) found.push(fault('run', run, 'The run holds no session.'));
  }
  yield { snapshots: 0, found };
}

function problemsIn({ problemOf, node }: FileReading): ProblemsOf {
  const files = new Map<string, string | undefined>();
  const problemOfFile = (hash: string): string | undefined => {
    if (!files.has(hash)) files.set(hash, problemOf(hash));
    return files.get(hash);
  };
  const tree = {
    // biome-ignore lint/correctness/useYield: read at once, from memory or the disk.
    *node(hash: string): Generator<never, Uint8Array | undefined, undefined> {
      return node(hash);
    },
    // biome-ignore lint/correctness/useYield: as above.
    *problemOfFile(hash: string): Generator<never, string | undefined, undefined> {
      return problemOfFile(hash);
    },
    seen: new Map<string, readonly string[]>(),
  };
  return (artifacts) => [
    ...fileHashesIn(artifacts).flatMap((hash) => problemOfFile(hash) ?? []),
    ...treeHashesIn(artifacts).flatMap((hash) => treeProblems(hash, tree).next().value),
  ];
}

function snapshotFaults(
  tables: Tables,
  row: SnapshotRow,
  known: Map<Link, History>,
  problemsOf: ProblemsOf,
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
    for (const message of problemsOf(artifacts)) faults.push(fault('hash', row, message));
  } catch (error) {
    if (!isWaymarkError(error)) throw error;
    faults.push(fault('hash', row, error.message));
  }
  if (parent !== undefined && tables.snapshots.get(parent.id) !== parent) {
    faults.push(fault('parent', row, `Its parent "${parent.id}" is not there.`));
  }
  return faults;
}

function sessionFaults(tables: Tables, session: SessionRow): Fault[] {
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
