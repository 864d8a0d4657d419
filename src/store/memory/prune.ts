import type { RetentionPolicy, Scope } from '../contract/store.ts';
import {
  type RetainedSession,
  type RetainedSnapshot,
  type Selection,
  selectVictims,
} from '../rules/retention.ts';
import { allRows, familyFinder } from './rows.ts';
import {
  findSession,
  holder,
  inScope,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

/**
 * The families of some sessions that may be removed. A session takes its sub-agents' sessions with it, so it is removed only when
 * all of them may be; one that was used since it was looked at stays.
 */
export function spentFamilies(
  tables: Tables,
  spent: readonly SessionRow[],
  policy: RetentionPolicy,
  scope?: Scope,
): Set<SessionRow> {
  const current = ({ scope: of, id }: SessionRow) => findSession(tables, of, id) ?? [];
  const mayGo = (session: SessionRow): boolean =>
    inScope(session, scope) && select(tables, session, policy).dropSession;
  const families = spent.flatMap(current).map(familyFinder(tables));
  const refreshed = families.map((family) => family.flatMap(current));
  return new Set(refreshed.filter((family) => family.every(mayGo)).flat());
}

export function pruneSession(
  tables: Tables,
  session: SessionRow,
  policy: RetentionPolicy,
): { readonly removed: number; readonly dropSession: boolean } {
  const { victims, dropSession } = select(tables, session, policy);
  removeRows(tables, session, victims);
  return { removed: victims.size, dropSession };
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
}
