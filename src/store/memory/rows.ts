import { defined } from '../../core/json/json.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Scope } from '../contract/store.ts';
import { dropMemoryOf } from './memories.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from './tables.ts';

/** The fields of a new session. */
interface Origin {
  readonly startedBy?: SessionInfo['startedBy'];
  readonly forkedFrom?: SessionInfo['forkedFrom'];
  /** @default now */
  readonly createdAt?: number;
}

export function createSessionRow(
  tables: Tables,
  scope: Scope,
  sessionId: string,
  { startedBy, forkedFrom, createdAt = tables.clock.now() }: Origin = {},
): SessionRow {
  const session: SessionRow = {
    scope: scope.owner === undefined ? { agent: scope.agent } : { ...scope },
    id: sessionId,
    createdAt,
    updatedAt: createdAt,
    head: undefined,
    listed: [],
    nextIndex: 0,
    run: undefined,
    ...defined({ startedBy, forkedFrom }),
  };
  tables.sessions.set(sessionKey(scope, sessionId), session);
  return session;
}

/** A new snapshot, which is not listed and begins now unless it says otherwise. */
export function addSnapshot(
  tables: Tables,
  row: Omit<SnapshotRow, DefaultField> & Partial<Pick<SnapshotRow, DefaultField>>,
): SnapshotRow {
  const now = tables.clock.now();
  const added = tables.newRow({ index: -1, createdAt: now, updatedAt: now, ...row });
  tables.snapshots.set(added.id, added);
  return added;
}

type DefaultField = 'index' | 'createdAt' | 'updatedAt';

/** The optional fields of a snapshot that it has from its turn, and that are read as they were written. */
type TurnField = 'finishReason' | 'error' | 'edit' | 'usage';

export function turnFieldsOf(snapshot: Pick<Snapshot, TurnField>): Pick<SnapshotRow, TurnField> {
  const { finishReason, error, edit, usage } = snapshot;
  return defined({ finishReason, error, edit, usage });
}

/** The snapshots of a session: those that are listed, and an unlisted head. */
export function allRows({ listed, head }: SessionRow): readonly SnapshotRow[] {
  return head !== undefined && head.index < 0 ? [...listed, head] : listed;
}

/** Whether a session is as its first claim made it: nothing was written to it, said about it or started in it. */
export function isBlank(tables: Tables, session: SessionRow): boolean {
  const { listed, head, nextIndex, title, metadata } = session;
  if (head !== undefined || listed.length > 0 || nextIndex > 0) return false;
  if (title !== undefined || metadata !== undefined) return false;
  return familyFinder(tables)(session).length === 1;
}

/** Removes sessions with all that belongs to them; returns how many snapshots they had. Events and requests are gone through once. */
export function dropSessionRows(tables: Tables, sessions: ReadonlySet<SessionRow>): number {
  for (const [runId, log] of tables.events) {
    if (!sessions.has(log.session)) continue;
    tables.events.delete(runId);
    tables.endedAt.delete(runId);
  }
  for (const [key, request] of tables.requests) {
    if (sessions.has(request.session)) tables.requests.delete(key);
  }
  dropMemoryOf(tables, sessions);
  let snapshots = 0;
  for (const session of sessions) snapshots += dropOwnRows(tables, session);
  for (const session of sessions) tables.files.removed(allRows(session));
  return snapshots;
}

function dropOwnRows(tables: Tables, session: SessionRow): number {
  const rows = allRows(session);
  for (const row of rows) tables.snapshots.delete(row.id);
  if (session.run !== undefined) tables.runs.delete(session.run.id);
  for (const row of rows) tables.dead.delete(row.id);
  tables.sessions.delete(sessionKey(session.scope, session.id));
  for (const row of rows) tables.emitter.emit(row.id);
  if (session.run !== undefined) tables.emitter.emit(session.run.id);
  return rows.length;
}

/**
 * Finds, after one pass over all sessions, the family of a session: itself and, however deep, the sessions of the sub-agents
 * that were started in it. It does not know sessions that are added later.
 */
export function familyFinder(tables: Tables): (session: SessionRow) => readonly SessionRow[] {
  const subSessions = [...tables.sessions.values()].filter((session) => session.startedBy);
  const started = Map.groupBy(subSessions, ({ startedBy, scope }) =>
    sessionKey({ ...scope, agent: startedBy?.agent ?? '' }, startedBy?.sessionId ?? ''),
  );
  return (session) => {
    const found = new Set([session]);
    for (const { scope, id } of found) {
      for (const each of started.get(sessionKey(scope, id)) ?? []) found.add(each);
    }
    return [...found];
  };
}
