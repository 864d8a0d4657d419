import type { RetentionPolicy, Scope } from '../contract/store.ts';
import {
  type RetainedSession,
  type RetainedSnapshot,
  type Selection,
  selectVictims,
} from '../rules/retention.ts';
import { allRows, dropSessionRows, familyFinder } from './rows.ts';
import {
  findSession,
  holder,
  inScope,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

/** Number of sessions that are removed in one step. */
export const batch = 64;

/** Removes what a policy does not keep from sessions that are handed over, and then the sessions that may go. */
export function createPruning(tables: Tables, policy: RetentionPolicy, scope?: Scope) {
  const spent: SessionRow[] = [];
  const report = { snapshots: 0, sessions: 0 };
  const current = ({ scope: of, id }: SessionRow) => findSession(tables, of, id) ?? [];
  const mayGo = (session: SessionRow): boolean =>
    inScope(session, scope) && select(tables, session, policy).dropSession;
  return {
    report,
    /** Sessions that may be removed. */
    spent,
    /** Prunes sessions of the scope; returns their number. */
    prune(sessions: Iterable<SessionRow>): number {
      const looked = [...sessions].filter((session) => inScope(session, scope));
      for (const session of looked) {
        const { victims, dropSession } = select(tables, session, policy);
        removeRows(tables, session, victims);
        if (dropSession) spent.push(session);
        report.snapshots += victims.size;
      }
      return looked.length;
    },
    /**
     * Removes some spent sessions. A session takes its sub-agents' sessions with it, so it is removed only when all of them may be; one
     * that was used since it was looked at stays.
     */
    dropSome(): void {
      const families = spent.splice(0, batch).flatMap(current).map(familyFinder(tables));
      const refreshed = families.map((family) => family.flatMap(current));
      const gone = new Set(refreshed.filter((family) => family.every(mayGo)).flat());
      report.snapshots += dropSessionRows(tables, gone);
      report.sessions += gone.size;
    },
  };
}

/** The snapshots of a session that a policy removes. */
function select(
  tables: Pick<Tables, 'clock'>,
  session: SessionRow,
  policy: RetentionPolicy,
): Selection {
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
    snapshots: allRows(session).map((row) => toRetainedSnapshot(session, row)),
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
  const notes = tables.memory.of(session.scope.owner ?? '');
  for (const id of victims) notes.dropNote(id);
}
