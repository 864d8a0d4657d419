import type { Page } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Scope, TimelineSupport } from '../contract/store.ts';
import { notFound, sessionExists, stillRunning } from '../rules/errors.ts';
import { checkSessionId, checkSnapshotId } from '../rules/ids.ts';
import { checkLabel, checkMetadata, checkTitle } from '../rules/size-limits.ts';
import { checkHead, displace, succeeded } from './claim.ts';
import { pageOf } from './page.ts';
import { activePath, isOrphaned, toMetadata, toSessionInfo, withState } from './reading.ts';
import { createSessionRow, dropSessionRow } from './rows.ts';
import { withSubSessions } from './sub-sessions.ts';
import {
  checkFree,
  checkUnused,
  findRun,
  findSession,
  findSnapshot,
  inScope,
  list,
  moveHead,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

/** Sessions and their trees. */
export function timelineSupport(tables: Tables): TimelineSupport {
  const now = (): number => tables.clock.now();
  return {
    async getSession(scope, sessionId, options = {}) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return undefined;
      const info = toSessionInfo(session, now());
      if (options.state !== true || session.head === undefined) return info;
      const { state } = withState(session.head, now());
      return state === undefined ? info : { ...info, state };
    },
    async listSessions(scope, { query = '', ...options } = {}) {
      const sessions = [...tables.sessions.values()]
        .filter((session) => inScope(session, scope) && matches(session, query.toLowerCase()))
        .sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
      const keyOf = (session: SessionRow): readonly [number, string] => [
        -session.updatedAt,
        session.id,
      ];
      const { items, next } = pageOf(sessions, keyOf, options);
      const infos = items.map((session) => toSessionInfo(session, now()));
      return next === undefined ? { items: infos } : { items: infos, next };
    },
    async updateSession(scope, sessionId, { title, metadata }) {
      const session = known(tables, scope, sessionId);
      if (metadata === null) delete session.metadata;
      else if (metadata !== undefined) session.metadata = checkMetadata(metadata);
      if (title === null) delete session.title;
      else if (title !== undefined) session.title = checkTitle(title);
      session.updatedAt = now();
      return toSessionInfo(session, now());
    },
    async deleteSession(scope, sessionId) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return false;
      const sessions = withSubSessions(tables, session);
      for (const each of sessions) checkFree(each, now());
      for (const each of sessions) dropSessionRow(tables, each);
      return true;
    },
    listSnapshots: async (scope, sessionId, options = {}) =>
      listSnapshots(tables, scope, sessionId, options),
    async restore(scope, snapshotId, { expectHead } = {}) {
      const row = written(tables, scope, snapshotId);
      succeeded(row, snapshotId);
      checkFree(row.session, now());
      checkHead(row.session, expectHead);
      displace(tables, row.session);
      moveHead(row.session, row);
      row.session.updatedAt = now();
      return toMetadata(row, now());
    },
    fork: async (scope, snapshotId, target) => fork(tables, scope, snapshotId, target),
    async label(scope, snapshotId, label, { expectHead } = {}) {
      const row = written(tables, scope, snapshotId);
      checkHead(row.session, expectHead);
      if (label === null) delete row.label;
      else row.label = checkLabel(label);
      // A name is for something that stays.
      if (label !== null && row.index < 0) list(row);
      tables.emitter.emit(snapshotId);
      return toMetadata(row, now());
    },
  };
}

function known(tables: Tables, scope: Scope, sessionId: string): SessionRow {
  const session = findSession(tables, scope, sessionId);
  if (session === undefined) throw notFound('session', sessionId);
  return session;
}

/** A snapshot that has been written; a turn that is being worked on cannot be gone back to or named yet. */
function written(tables: Tables, scope: Scope, snapshotId: string): SnapshotRow {
  const row = findSnapshot(tables, scope, snapshotId);
  if (row !== undefined) return row;
  if (findRun(tables, scope, snapshotId) === undefined) throw notFound('snapshot', snapshotId);
  throw stillRunning(snapshotId);
}

function matches(session: SessionRow, query: string): boolean {
  if (query === '') return true;
  const texts = [session.id, session.title ?? '', JSON.stringify(session.metadata ?? '')];
  return texts.some((text) => text.toLowerCase().includes(query));
}

function listSnapshots(
  tables: Tables,
  scope: Scope,
  sessionId: string,
  {
    includeOrphaned = false,
    ...options
  }: NonNullable<Parameters<TimelineSupport['listSnapshots']>[2]>,
): Page<Snapshot> {
  const session = findSession(tables, scope, sessionId);
  if (session === undefined) return { items: [] };
  const path = activePath(session);
  const rows = includeOrphaned
    ? session.listed
    : session.listed.filter((row) => !isOrphaned(row, path));
  const { items, next } = pageOf(rows, (row) => [row.index, ''], options);
  const now = tables.clock.now();
  const snapshots = items.map((row) => toMetadata(row, now, path));
  return next === undefined ? { items: snapshots } : { items: snapshots, next };
}

function fork(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
  target: Parameters<TimelineSupport['fork']>[2],
): Snapshot {
  const source = succeeded(written(tables, scope, snapshotId), snapshotId);
  checkHead(source.session, target.expectHead);
  checkSessionId(target.sessionId);
  checkSnapshotId(target.snapshotId);
  checkUnused(tables, target.snapshotId);
  if (findSession(tables, scope, target.sessionId) !== undefined) {
    throw sessionExists(target.sessionId);
  }
  const session = createSessionRow(tables, scope, target.sessionId, {
    forkedFrom: { sessionId: source.session.id, snapshotId },
  });
  const { turnIndex, event, finishReason, totals, state, stateHash } = source;
  const row = tables.newRow({
    id: target.snapshotId,
    session,
    parent: undefined,
    index: -1,
    turnIndex,
    event,
    status: 'succeeded',
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(totals === undefined ? {} : { totals }),
    createdAt: session.createdAt,
    updatedAt: session.createdAt,
    state,
    stateHash,
  });
  list(row);
  session.head = row;
  tables.snapshots.set(row.id, row);
  return toMetadata(row, row.createdAt);
}
