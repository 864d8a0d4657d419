import type { PruneReport, RetentionPolicy, Scope } from '../contract/store.ts';
import { checkPolicy, type RetainedSession, selectVictims } from '../rules/retention.ts';
import { allRows, dropSessionRows } from './rows.ts';
import { familyFinder } from './sub-sessions.ts';
import { holder, inScope, type SessionRow, sessionKey, type Tables } from './tables.ts';

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
    const { victims, dropSession } = select(tables, session, policy);
    if (dropSession) spent.push(session);
    snapshots += victims.size;
    removeRows(tables, session, victims);
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

function select(tables: Tables, session: SessionRow, policy: RetentionPolicy) {
  const now = tables.clock.now();
  return selectVictims(toRetained(session, now), policy, now);
}

function toRetained(session: SessionRow, now: number): RetainedSession {
  const { run } = session;
  return {
    sessionId: session.id,
    updatedAt: session.updatedAt,
    headId: session.head?.id,
    held: [run?.start?.id, run?.base?.id],
    running: holder(session, now) !== undefined,
    snapshots: allRows(session).map((row) => ({
      snapshotId: row.id,
      parentId: row.parent?.id,
      index: row.index,
      status: row.status === 'pending' && run?.row !== row ? 'expired' : row.status,
      event: row.event,
      finishReason: row.finishReason,
      label: row.label,
      updatedAt: row.updatedAt,
    })),
  };
}

function removeRows(tables: Tables, session: SessionRow, victims: ReadonlySet<string>): void {
  if (victims.size === 0) return;
  for (const row of allRows(session)) {
    while (row.parent !== undefined && victims.has(row.parent.id)) row.parent = row.parent.parent;
  }
  session.listed = session.listed.filter((row) => !victims.has(row.id));
  for (const id of victims) tables.snapshots.delete(id);
}
