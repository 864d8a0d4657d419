import { checkScope, checkSessionId } from '../../protocol/ids.ts';
import {
  fromSessionExport,
  type ImportedSession,
  type ImportRow,
  renewIds,
} from '../../session/import-session.ts';
import type { Scope } from '../contract/store.ts';
import { sessionExists } from '../rules/errors.ts';
import { createSessionRow } from './rows.ts';
import { findSession, type SessionRow, type Tables } from './tables.ts';

/** Puts a session from a document into the store, under its own id or another. */
export function importSession(
  tables: Tables,
  scope: Scope,
  document: unknown,
  options: { readonly sessionId?: string },
): SessionRow {
  const read = fromSessionExport(document);
  const { sessionId = read.session.sessionId } = options;
  checkScope(scope);
  checkSessionId(sessionId);
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
  const { finishReason, error, edit, usage, label } = snapshot;
  const row = tables.newRow({
    id: snapshot.snapshotId,
    session,
    parent: tables.snapshots.get(snapshot.parentId ?? ''),
    index: snapshot.index,
    turnIndex: snapshot.turnIndex,
    event: snapshot.event,
    status: snapshot.status,
    createdAt: Date.parse(snapshot.createdAt),
    updatedAt: Date.parse(snapshot.updatedAt),
    state,
    stateHash: snapshot.stateHash,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(error === undefined ? {} : { error }),
    ...(edit === undefined ? {} : { edit }),
    ...(usage === undefined ? {} : { usage }),
    ...(label === undefined ? {} : { label }),
    ...(totals === undefined ? {} : { totals }),
  });
  tables.snapshots.set(row.id, row);
  if (row.index < 0) return;
  session.listed.push(row);
  session.nextIndex = row.index + 1;
}
