import { defined } from '../../core/json/json.ts';
import type { Page } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type {
  ListOptions,
  Scope,
  SessionFilter,
  SnapshotListing,
  TimelineSupport,
} from '../contract/store.ts';
import {
  checkFork,
  decideLabel,
  decideRestore,
  type NamedFacts,
} from '../rules/decide-timeline.ts';
import { notFound } from '../rules/errors.ts';
import { pageOf } from '../rules/page.ts';
import { matchesQuery, passesFilter, searchTextOf } from '../rules/session-filter.ts';
import { checkMetadata } from '../rules/size-limits.ts';
import { checkFree, endRun, expireRun } from './claim.ts';
import { holderFact, namedFacts } from './facts.ts';
import { forkMemory } from './memories.ts';
import { activePath, isOrphaned, toMetadata, toSessionInfo, withState } from './reading.ts';
import { addSnapshot, createSessionRow, dropSessionRows, familyFinder } from './rows.ts';
import {
  currentRun,
  findSession,
  inScope,
  isUsed,
  leaveInbox,
  list,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

export function timelineSupport(tables: Tables): Required<TimelineSupport> {
  const now = (): number => tables.clock.now();
  return {
    async getSession(scope, sessionId, options = {}) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return undefined;
      const info = toSessionInfo(session, now());
      if (options.state !== true || session.head === undefined) return info;
      const { state, messageRange } = withState(session.head, now(), options);
      return defined({ ...info, state, messageRange });
    },
    async listSessions(scope, options = {}) {
      const sessions = [...tables.sessions.values()]
        .filter((session) => inScope(session, scope) && isWanted(session, options, now()))
        .sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
      const page = pageOf(sessions, ({ updatedAt, id }) => [-updatedAt, id], options);
      return { ...page, items: page.items.map((session) => toSessionInfo(session, now())) };
    },
    async listOwners(options = {}) {
      const owners = new Set(
        [...tables.sessions.values()].flatMap(({ scope }) => scope.owner ?? []),
      );
      return pageOf([...owners].sort(), (owner) => [0, owner], options);
    },
    async updateSession(scope, sessionId, { title, metadata, defaultTitle }) {
      const session = known(tables, scope, sessionId);
      if (defaultTitle !== undefined) session.title ??= defaultTitle;
      if (metadata === null) delete session.metadata;
      else if (metadata !== undefined) session.metadata = checkMetadata(metadata);
      if (title === null) delete session.title;
      else if (title !== undefined) session.title = title;
      if (title !== undefined || metadata !== undefined) session.updatedAt = now();
      return toSessionInfo(session, now());
    },
    async deleteSession(scope, sessionId) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return false;
      const sessions = familyFinder(tables)(session);
      for (const each of sessions) checkFree(each, now());
      dropSessionRows(tables, new Set(sessions));
      return true;
    },
    listSnapshots: async (scope, sessionId, options = {}) =>
      listSnapshots(tables, scope, sessionId, options),
    async restore(scope, snapshotId, { expectHead, run: ref } = {}) {
      const held = ref && currentRun(tables, ref);
      const named = namedFacts(tables, scope, snapshotId);
      const session = named.snapshot?.key.session;
      const isHeld = held !== undefined && held === session?.run;
      const run = session === undefined || isHeld ? null : holderFact(session, now());
      const facts = { ...named, run, now: now() };
      const decision = decideRestore(facts, { snapshotId, expectHead });
      const row = found(named, snapshotId);
      if (decision.displaced !== null) expireRun(tables, decision.displaced);
      if (decision.listsHead && row.session.head !== undefined) list(row.session.head);
      row.session.head = row;
      row.session.updatedAt = now();
      if (isHeld) {
        leaveInbox(held);
        endRun(tables, held);
      }
      return toMetadata(row, now());
    },
    fork: async (scope, snapshotId, target) => fork(tables, scope, snapshotId, target),
    async label(scope, snapshotId, label, { expectHead } = {}) {
      const named = namedFacts(tables, scope, snapshotId);
      const { lists } = decideLabel(named, { snapshotId, label, expectHead });
      const row = found(named, snapshotId);
      if (label === null) delete row.label;
      else row.label = label;
      if (lists) list(row);
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

/** The row that the rules have found to be there. */
function found({ snapshot }: NamedFacts<SnapshotRow>, snapshotId: string): SnapshotRow {
  if (snapshot === null) throw notFound('snapshot', snapshotId);
  return snapshot.key;
}

function listSnapshots(
  tables: Tables,
  scope: Scope,
  sessionId: string,
  { includeOrphaned = false, newestFirst = false, ...options }: ListOptions & SnapshotListing,
): Page<Snapshot> {
  const session = findSession(tables, scope, sessionId);
  if (session === undefined) return { items: [] };
  const path = activePath(session);
  const rows = includeOrphaned
    ? session.listed
    : session.listed.filter((row) => !isOrphaned(row, path));
  const page = newestFirst
    ? pageOf(rows.toReversed(), (row) => [-row.index, ''], options)
    : pageOf(rows, (row) => [row.index, ''], options);
  const now = tables.clock.now();
  return { ...page, items: page.items.map((row) => toMetadata(row, now, path)) };
}

function fork(
  tables: Tables,
  scope: Scope,
  snapshotId: string,
  target: Parameters<TimelineSupport['fork']>[2],
): Snapshot {
  const facts = {
    ...namedFacts(tables, scope, snapshotId),
    isTaken: isUsed(tables, target.snapshotId),
    sessionExists: findSession(tables, scope, target.sessionId) !== undefined,
  };
  checkFork(facts, snapshotId, target);
  const source = found(facts, snapshotId);
  const session = createSessionRow(tables, scope, target.sessionId, {
    forkedFrom: { sessionId: source.session.id, snapshotId },
  });
  const { turnIndex, event, finishReason, totals, state, stateHash } = source;
  const row = addSnapshot(tables, {
    id: target.snapshotId,
    session,
    parent: undefined,
    turnIndex,
    // The copy was not edited.
    event: event === 'edit' ? 'turnEnd' : event,
    status: 'succeeded',
    ...defined({ finishReason, totals }),
    createdAt: session.createdAt,
    updatedAt: session.createdAt,
    state,
    stateHash,
  });
  list(row);
  session.head = row;
  if (target.memory !== undefined) forkMemory(tables, source, row, target.memory);
  if (source.session.effects !== undefined) session.effects = source.session.effects;
  return toMetadata(row, row.createdAt);
}

/** Whether a session is one of those that a list is narrowed to. */
function isWanted(session: SessionRow, filter: SessionFilter, now: number): boolean {
  const { id, title, metadata, head, listed } = session;
  const isRunning = toSessionInfo(session, now).running !== undefined;
  const isLabelled = (): boolean => listed.some(({ label }) => label !== undefined);
  if (!passesFilter(filter, { isRunning, head, last: listed.at(-1), isLabelled })) return false;
  const text = (): string => (head === undefined ? '' : textOf(head));
  return matchesQuery(filter.query ?? '', { id, title, metadata, text });
}

// A search reads each state once; the next one only those that are new.
const texts = new WeakMap<SnapshotRow, { readonly stateHash: string; readonly text: string }>();

function textOf(head: SnapshotRow): string {
  const { stateHash } = head;
  const known = texts.get(head);
  if (known?.stateHash === stateHash) return known.text;
  const text = searchTextOf(head.state.history.toArray());
  texts.set(head, { stateHash, text });
  return text;
}
