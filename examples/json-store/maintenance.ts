import { randomUUID } from 'node:crypto';
import {
  type ExportRow,
  fromPlainState,
  fromSessionExport,
  type ImportRow,
  type MaintenanceSupport,
  type PruneReport,
  type RetainedSession,
  type RetentionPolicy,
  renewIds,
  type Scope,
  storeErrors,
  storeRules,
  toPlainState,
  toSessionExport,
} from 'waymark/store';
import type { JsonFile } from './json-file.ts';
import { toMetadata, toSessionInfo } from './read.ts';
import {
  createSession,
  dropSession,
  findSession,
  inScope,
  isUsed,
  rowsOf,
  type SessionRow,
  snapshotAt,
  type Transaction,
  withSubSessions,
} from './tables.ts';
import { verify } from './verify.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(file: JsonFile): MaintenanceSupport {
  return {
    prune: (policy, scope) => file.write((tx) => prune(tx, policy, scope)),
    eraseOwner: (owner) =>
      file.write((tx) => {
        const sessions = Object.values(tx.data.sessions).filter((z) => z.scope.owner === owner);
        for (const session of sessions) dropSession(tx, session);
        return sessions.length;
      }),
    verify: ({ onProgress } = {}) => file.read((tx) => verify(tx, onProgress)),
    exportSession: (scope, sessionId) =>
      file.read((tx) => {
        const session = findSession(tx, scope, sessionId);
        if (session === undefined) return undefined;
        return toSessionExport(toSessionInfo(tx, session), exportRows(tx, session));
      }),
    importSession: (scope, document, { sessionId } = {}) =>
      file.write((tx) => importSession(tx, scope, { document, sessionId })),
  };
}

function exportRows(tx: Transaction, session: SessionRow): readonly ExportRow[] {
  return rowsOf(tx, session)
    .filter(({ status }) => status !== 'pending')
    .map((row) => ({
      snapshot: toMetadata(tx, row),
      totals: row.totals,
      state: fromPlainState(row.state),
    }));
}

function importSession(
  tx: Transaction,
  scope: Scope,
  from: { readonly document: unknown; readonly sessionId: string | undefined },
): ReturnType<typeof toSessionInfo> {
  const read = fromSessionExport(from.document);
  const { sessionId = read.session.sessionId } = from;
  if (findSession(tx, scope, sessionId) !== undefined) throw storeErrors.sessionExists(sessionId);
  const isTaken = read.snapshots.some(({ snapshot }) => isUsed(tx, snapshot.snapshotId));
  const imported = isTaken ? renewIds(read, randomUUID) : read;
  const { title, metadata, createdAt, updatedAt, headId, ...origin } = imported.session;
  const session = createSession(tx, scope, sessionId, {
    ...origin,
    createdAt: Date.parse(createdAt),
  });
  session.updatedAt = Date.parse(updatedAt);
  if (title !== undefined) session.title = title;
  if (metadata !== undefined) session.metadata = metadata;
  for (const row of imported.snapshots) importRow(tx, session, row);
  session.head = headId ?? null;
  return toSessionInfo(tx, session);
}

function importRow(
  tx: Transaction,
  session: SessionRow,
  { snapshot, totals, state }: ImportRow,
): void {
  const { snapshotId: id, parentId, createdAt, updatedAt, ...rest } = snapshot;
  tx.data.snapshots[id] = {
    index: rest.index,
    turnIndex: rest.turnIndex,
    event: rest.event,
    status: rest.status,
    stateHash: rest.stateHash,
    ...(rest.finishReason && { finishReason: rest.finishReason }),
    ...(rest.error && { error: rest.error }),
    ...(rest.edit && { edit: rest.edit }),
    ...(rest.usage && { usage: rest.usage }),
    ...(rest.label !== undefined && { label: rest.label }),
    ...(totals && { totals }),
    id,
    session: session.key,
    parent: parentId ?? null,
    createdAt: Date.parse(createdAt),
    updatedAt: Date.parse(updatedAt),
    state: toPlainState(state),
  };
  if (rest.index >= 0) session.nextIndex = rest.index + 1;
}

/** Removes what a policy does not keep. The rules choose the snapshots. */
function prune(tx: Transaction, policy: RetentionPolicy, scope: Scope | undefined): PruneReport {
  const spent = new Set<SessionRow>();
  let snapshots = 0;
  for (const session of Object.values(tx.data.sessions)) {
    if (!inScope(session, scope)) continue;
    const selected = storeRules.prune(toRetained(tx, session), policy, tx.now);
    if (selected.dropSession) spent.add(session);
    snapshots += selected.victims.size;
    for (const row of rowsOf(tx, session)) {
      while (row.parent !== null && selected.victims.has(row.parent)) {
        row.parent = snapshotAt(tx, row.parent)?.parent ?? null;
      }
    }
    for (const id of selected.victims) delete tx.data.snapshots[id];
  }
  // A session takes its sub-agents' sessions with it, so it goes only when all of them may.
  const families = [...spent].map((session) => withSubSessions(tx, session));
  const gone = new Set(families.filter((each) => each.every((one) => spent.has(one))).flat());
  for (const session of gone) snapshots += dropSession(tx, session);
  return { snapshots, sessions: gone.size };
}

function toRetained(tx: Transaction, session: SessionRow): RetainedSession {
  const run = session.run === null ? undefined : tx.data.runs[session.run];
  return {
    sessionId: session.id,
    updatedAt: session.updatedAt,
    headId: session.head ?? undefined,
    held: [run?.start ?? undefined, run?.base ?? undefined],
    running: run !== undefined && storeRules.isHolder({ ...run, mode: run.request.mode }, tx.now),
    snapshots: rowsOf(tx, session).map((row) => ({
      snapshotId: row.id,
      parentId: row.parent ?? undefined,
      index: row.index,
      status: row.status === 'pending' && run?.id !== row.id ? 'expired' : row.status,
      event: row.event,
      finishReason: row.finishReason,
      label: row.label,
      updatedAt: row.updatedAt,
    })),
  };
}
