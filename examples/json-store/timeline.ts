import {
  type Page,
  pageOf,
  type Scope,
  type SessionFilter,
  type Snapshot,
  storeErrors,
  storeRules,
  type TimelineSupport,
} from 'waymark/store';
import { checkFree, leaveBehind } from './claim.ts';
import { namedFacts } from './facts.ts';
import type { JsonFile } from './json-file.ts';
import { activePath, isOrphaned, readSnapshot, toMetadata, toSessionInfo } from './read.ts';
import {
  createSession,
  dropSession,
  findSession,
  findSnapshot,
  inScope,
  isUsed,
  list,
  rowsOf,
  type SessionRow,
  type SnapshotRow,
  sessionOf,
  snapshotAt,
  type Transaction,
  withSubSessions,
} from './tables.ts';

/** Sessions and their trees. */
export function timelineSupport(file: JsonFile): TimelineSupport {
  return {
    getSession: (scope, sessionId, options = {}) =>
      file.read((tx) => {
        const session = findSession(tx, scope, sessionId);
        if (session === undefined) return undefined;
        const info = toSessionInfo(tx, session);
        if (options.state !== true) return info;
        const state = readSnapshot(tx, scope, { sessionId })?.state;
        return { ...info, ...(state && { state }) };
      }),
    listSessions: (scope, options = {}) =>
      file.read((tx) => {
        const sessions = Object.values(tx.data.sessions)
          .filter((session) => inScope(session, scope) && isWanted(tx, session, options))
          .sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
        const page = pageOf(sessions, ({ updatedAt, id }) => [-updatedAt, id], options);
        return { ...page, items: page.items.map((session) => toSessionInfo(tx, session)) };
      }),
    listOwners: (options = {}) =>
      file.read((tx) => {
        const owners = new Set(
          Object.values(tx.data.sessions).flatMap(({ scope }) => scope.owner ?? []),
        );
        return pageOf([...owners].sort(), (owner) => [0, owner], options);
      }),
    updateSession: (scope, sessionId, { title, metadata, defaultTitle }) =>
      file.write((tx) => {
        const session = findSession(tx, scope, sessionId);
        if (session === undefined) throw storeErrors.notFound('session', sessionId);
        if (defaultTitle !== undefined) session.title ??= defaultTitle;
        if (metadata === null) delete session.metadata;
        else if (metadata !== undefined) session.metadata = storeRules.metadata(metadata);
        if (title === null) delete session.title;
        else if (title !== undefined) session.title = title;
        if (title !== undefined || metadata !== undefined) session.updatedAt = tx.now;
        return toSessionInfo(tx, session);
      }),
    deleteSession: (scope, sessionId) =>
      file.write((tx) => {
        const session = findSession(tx, scope, sessionId);
        if (session === undefined) return false;
        const sessions = withSubSessions(tx, session);
        for (const each of sessions) checkFree(tx, each);
        for (const each of sessions) dropSession(tx, each);
        return true;
      }),
    listSnapshots: (scope, sessionId, options) =>
      file.read((tx) => listSnapshots(tx, scope, sessionId, options)),
    restore: (scope, snapshotId, { expectHead } = {}) =>
      file.write((tx) => {
        const facts = { ...namedFacts(tx, scope, snapshotId), now: tx.now };
        const decision = storeRules.restore(facts, { snapshotId, expectHead });
        const row = found(tx, scope, snapshotId);
        const session = sessionOf(tx, row);
        if (decision.displaced !== null) leaveBehind(tx, tx.data.runs[decision.displaced]);
        const head = snapshotAt(tx, session.head);
        if (decision.listsHead && head !== undefined) list(tx, head);
        session.head = row.id;
        session.updatedAt = tx.now;
        return toMetadata(tx, row);
      }),
    fork: (scope, snapshotId, target) => file.write((tx) => fork(tx, scope, snapshotId, target)),
    label: (scope, snapshotId, label, { expectHead } = {}) =>
      file.write((tx) => {
        const facts = namedFacts(tx, scope, snapshotId);
        const { lists } = storeRules.label(facts, { snapshotId, label, expectHead });
        const row = found(tx, scope, snapshotId);
        if (label === null) delete row.label;
        else row.label = label;
        if (lists) list(tx, row);
        tx.emit(snapshotId);
        return toMetadata(tx, row);
      }),
  };
}

/** The row that the rules have found to be there. */
function found(tx: Transaction, scope: Scope, snapshotId: string): SnapshotRow {
  const row = findSnapshot(tx, scope, snapshotId);
  if (row === undefined) throw storeErrors.notFound('snapshot', snapshotId);
  return row;
}

function isWanted(tx: Transaction, session: SessionRow, filter: SessionFilter): boolean {
  const { id, title, metadata } = session;
  const head = snapshotAt(tx, session.head);
  const listed = rowsOf(tx, session).filter((row) => row.index >= 0);
  const last = listed.at(-1);
  const isRunning = toSessionInfo(tx, session).running !== undefined;
  const isLabelled = () => listed.some(({ label }) => label !== undefined);
  const messages = () => head?.state.messages ?? [];
  const searched = { id, title, metadata, messages };
  return storeRules.matches(filter, { isRunning, head, last, isLabelled, ...searched });
}

function listSnapshots(
  tx: Transaction,
  scope: Scope,
  sessionId: string,
  options: NonNullable<Parameters<TimelineSupport['listSnapshots']>[2]> = {},
): Page<Snapshot> {
  const { includeOrphaned = false, newestFirst = false, ...range } = options;
  const session = findSession(tx, scope, sessionId);
  if (session === undefined) return { items: [] };
  const path = activePath(tx, session);
  const rows = rowsOf(tx, session).filter(
    (row) => row.index >= 0 && (includeOrphaned || !isOrphaned(row, path)),
  );
  const page = newestFirst
    ? pageOf(rows.toReversed(), ({ index }) => [-index, ''], range)
    : pageOf(rows, ({ index }) => [index, ''], range);
  return { ...page, items: page.items.map((row) => toMetadata(tx, row, path)) };
}

function fork(
  tx: Transaction,
  scope: Scope,
  snapshotId: string,
  target: Parameters<TimelineSupport['fork']>[2],
): Snapshot {
  const facts = {
    ...namedFacts(tx, scope, snapshotId),
    isTaken: isUsed(tx, target.snapshotId),
    sessionExists: findSession(tx, scope, target.sessionId) !== undefined,
  };
  storeRules.fork(facts, snapshotId, target);
  const source = found(tx, scope, snapshotId);
  const session = createSession(tx, scope, target.sessionId, {
    forkedFrom: { sessionId: sessionOf(tx, source).id, snapshotId },
  });
  const { turnIndex, event, finishReason, totals, state, stateHash } = source;
  const row: SnapshotRow = {
    id: target.snapshotId,
    session: session.key,
    parent: null,
    index: -1,
    turnIndex,
    event,
    status: 'succeeded',
    ...(finishReason && { finishReason }),
    ...(totals && { totals }),
    createdAt: tx.now,
    updatedAt: tx.now,
    state,
    stateHash,
  };
  list(tx, row);
  tx.data.snapshots[row.id] = row;
  session.head = row.id;
  return toMetadata(tx, row);
}
