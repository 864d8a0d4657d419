import type { PruneReport, RetentionPolicy, Scope } from '../contract/store.ts';
import { pausing } from '../rules/maintenance-steps.ts';
import {
  checkPolicy,
  type RetainedSession,
  type RetainedSnapshot,
  type Selection,
  selectInSteps,
  selectVictims,
} from '../rules/retention.ts';
import { allRows, dropSessionRows } from './rows.ts';
import { familyFinder } from './sub-sessions.ts';
import {
  holder,
  inScope,
  type SessionRow,
  type SnapshotRow,
  sessionKey,
  type Tables,
} from './tables.ts';

/** How many sessions are removed in one step. */
const batch = 64;

/** Removes what a policy does not keep. Turns may run between two steps; each step yields how many sessions it looked at. */
export function* pruneInSteps(
  tables: Tables,
  policy: RetentionPolicy,
  scope?: Scope,
): Generator<number, PruneReport> {
  checkPolicy(policy);
  const spent: SessionRow[] = [];
  let snapshots = 0;
  for (const session of tables.sessions.values()) {
    if (!inScope(session, scope)) continue;
    const { removed, dropSession } = yield* pruneSession(tables, session, policy);
    if (dropSession) spent.push(session);
    snapshots += removed;
    yield 1;
  }
  let sessions = 0;
  while (spent.length > 0) {
    const gone = wholeFamilies(tables, spent.splice(0, batch), (session) => {
      return inScope(session, scope) && select(tables, session, policy).dropSession;
    });
    snapshots += dropSessionRows(tables, gone);
    sessions += gone.size;
    yield 0;
  }
  return { snapshots, sessions };
}

/**
 * The families of some sessions that may be removed. A session takes its sub-agents' sessions with it, so it is removed only when
 * all of them may be; one that was used since it was looked at stays.
 */
function wholeFamilies(
  tables: Tables,
  spent: readonly SessionRow[],
  mayGo: (session: SessionRow) => boolean,
): Set<SessionRow> {
  const isThere = (session: SessionRow): boolean =>
    tables.sessions.get(sessionKey(session.scope, session.id)) === session;
  const families = spent.filter(isThere).map(familyFinder(tables));
  return new Set(families.filter((family) => family.every(mayGo)).flat());
}

/** How many snapshots are removed in one step. */
const removedAtOnce = 2000;

/** Removes snapshots of a session, of many a part at a time. When it was used in between, it is examined again. */
function* pruneSession(
  tables: Tables,
  session: SessionRow,
  policy: RetentionPolicy,
): Generator<number, { readonly removed: number; readonly dropSession: boolean }> {
  let removed = 0;
  for (;;) {
    const { victims, dropSession } = yield* selectSettled(tables, session, policy);
    const left = [...victims];
    for (let isSame = true; isSame; ) {
      const some = left.splice(0, removedAtOnce);
      removeRows(tables, session, new Set(some));
      removed += some.length;
      if (left.length === 0) return { removed, dropSession };
      const before = marksOf(session);
      yield 0;
      const after = marksOf(session);
      isSame =
        before.every((value, at) => value === after[at]) && !hasLabelled(tables, left, policy);
    }
  }
}

/** Whether one of some snapshots has got a label that keeps it. */
function hasLabelled(
  { snapshots }: Tables,
  ids: Iterable<string>,
  { keepLabelled = true }: RetentionPolicy,
): boolean {
  if (!keepLabelled) return false;
  for (const id of ids) if (snapshots.get(id)?.label !== undefined) return true;
  return false;
}

/** How often a session is examined again that was used while it was examined in steps. */
const maxTries = 3;

/**
 * What a policy removes of a session as it is when this returns. A long one is examined in steps, and again when it was used
 * meanwhile; one that is used all the time, without steps in the end.
 */
function* selectSettled(
  tables: Tables,
  session: SessionRow,
  policy: RetentionPolicy,
): Generator<number, Selection> {
  for (let tries = 0; tries < maxTries; tries++) {
    const before = marksOf(session);
    const found = yield* selectSlowly(tables, session, policy);
    const after = marksOf(session);
    const isSame = before.every((value, at) => value === after[at]);
    if (isSame && !hasLabelled(tables, found.victims, policy)) return found;
  }
  return select(tables, session, policy);
}

/** What changes when a session is used: its snapshots, its head, its run and what that continues from. */
function marksOf({ updatedAt, listed, nextIndex, head, run }: SessionRow): readonly unknown[] {
  return [updatedAt, listed, listed.length, nextIndex, head, head?.status, run, run?.base];
}

/** Like {@link select}, with a pause now and then: a session may have any number of snapshots. */
export function* selectSlowly(
  tables: Pick<Tables, 'clock'>,
  session: SessionRow,
  policy: RetentionPolicy,
): Generator<number, Selection> {
  const now = tables.clock.now();
  if (session.listed.length <= fewRows) return selectVictims(toRetained(session, now), policy, now);
  const snapshots: RetainedSnapshot[] = [];
  for (const row of pausing(allRows(session))) {
    if (row === undefined) yield 0;
    else snapshots.push(toRetainedSnapshot(session, row));
  }
  const retained = { ...toRetained(session, now, []), snapshots };
  const steps = selectInSteps(retained, policy, now);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    yield 0;
  }
}

/** A session with no more snapshots is examined without pauses. */
const fewRows = 500;

/** What a policy removes of a session. */
export function select(
  tables: Pick<Tables, 'clock'>,
  session: SessionRow,
  policy: RetentionPolicy,
): Selection {
  const now = tables.clock.now();
  return selectVictims(toRetained(session, now), policy, now);
}

function toRetained(
  session: SessionRow,
  now: number,
  rows: readonly SnapshotRow[] = allRows(session),
): RetainedSession {
  const { run } = session;
  return {
    sessionId: session.id,
    updatedAt: session.updatedAt,
    headId: session.head?.id,
    held: [run?.start?.id, run?.base?.id],
    running: holder(session, now) !== undefined,
    snapshots: rows.map((row) => toRetainedSnapshot(session, row)),
  };
}

function toRetainedSnapshot({ run }: SessionRow, row: SnapshotRow): RetainedSnapshot {
  return {
    snapshotId: row.id,
    parentId: row.parent?.id,
    index: row.index,
    status: row.status === 'pending' && run?.row !== row ? 'expired' : row.status,
    event: row.event,
    finishReason: row.finishReason,
    label: row.label,
    updatedAt: row.updatedAt,
  };
}

function removeRows(tables: Tables, session: SessionRow, victims: ReadonlySet<string>): void {
  if (victims.size === 0) return;
  for (const row of allRows(session)) {
    while (row.parent !== undefined && victims.has(row.parent.id)) row.parent = row.parent.parent;
  }
  const removed = allRows(session).filter((row) => victims.has(row.id));
  session.listed = session.listed.filter((row) => !victims.has(row.id));
  for (const id of victims) tables.snapshots.delete(id);
  tables.files.removed(removed);
}
