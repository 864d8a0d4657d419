import { isWaymarkError } from '../../core/error.ts';
import { fileHashesIn } from '../../protocol/artifacts.ts';
import { checkScope, checkSessionId } from '../../protocol/ids.ts';
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
import type { Fault, MaintenanceOptions, MaintenanceSupport, Scope } from '../contract/store.ts';
import { sessionExists } from '../rules/errors.ts';
import { createFaults, createSteps, type Faults } from '../rules/maintenance-steps.ts';
import { pruneInSteps } from './prune.ts';
import { activePath, toMetadata, toSessionInfo } from './reading.ts';
import { addSnapshot, allRows, createSessionRow, dropSessionRows, turnFieldsOf } from './rows.ts';
import { findSession, type SessionRow, type SnapshotRow, type Tables } from './tables.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(tables: Tables): MaintenanceSupport {
  return {
    prune: (policy, scope, options) => betweenTurns(pruneInSteps(tables, policy, scope), options),
    eraseOwner: (owner, options) => betweenTurns(eraseInSteps(tables, owner), options),
    async verify(options) {
      const faults = createFaults(options);
      await betweenTurns(
        verifyTables(tables, faults, (hash) => tables.files.problemOf(hash)),
        options,
      );
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

/** Lets everything else run after each step. */
async function betweenTurns<Result>(
  steps: Generator<number, Result>,
  options: MaintenanceOptions | undefined,
): Promise<Result> {
  const step = createSteps(options);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await step(value);
  }
}

function* exportRows(session: SessionRow, now: number): Iterable<ExportRow> {
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
    ...(label === undefined ? {} : { label }),
    ...(totals === undefined ? {} : { totals }),
  });
  if (row.index < 0) return;
  session.listed.push(row);
  session.nextIndex = row.index + 1;
}

/** How many sessions are removed in one step. */
const batch = 64;

/** Removes the sessions of an owner, and what it spent. Turns may run between two steps; each step yields how many sessions it removed. */
function* eraseInSteps(tables: Tables, owner: string): Generator<number, number> {
  let erased = 0;
  // Sessions that were made between two steps go as well.
  for (let some = someOf(tables, owner); some.size > 0; some = someOf(tables, owner)) {
    dropSessionRows(tables, some);
    erased += some.size;
    yield some.size;
  }
  tables.spend.eraseOwner(owner);
  return erased;
}

function someOf(tables: Tables, owner: string): Set<SessionRow> {
  const found = new Set<SessionRow>();
  for (const session of tables.sessions.values()) {
    if (session.scope.owner === owner) found.add(session);
    if (found.size === batch) break;
  }
  return found;
}

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
