import type { PruneReport, RetentionPolicy, Scope } from '../contract/store.ts';
import { checkPolicy, type RetainedSession, selectVictims } from '../rules/retention.ts';
import { allRows, dropSessionRow } from './rows.ts';
import { withSubSessions } from './sub-sessions.ts';
import { holder, inScope, type SessionRow, type Tables } from './tables.ts';

/** Removes what a policy does not keep. */
export function prune(
  tables: Tables,
  policy: RetentionPolicy,
  scope: Scope | undefined,
  step: () => void = () => {},
): PruneReport {
  checkPolicy(policy);
  const now = tables.clock.now();
  const spent = new Set<SessionRow>();
  let snapshots = 0;
  for (const session of tables.sessions.values()) {
    if (!inScope(session, scope)) continue;
    const { victims, dropSession } = selectVictims(toRetained(session, now), policy, now);
    if (dropSession) spent.add(session);
    snapshots += victims.size;
    removeRows(tables, session, victims);
    step();
  }
  const gone = wholeFamilies(tables, spent);
  for (const session of gone) snapshots += dropSessionRow(tables, session);
  return { snapshots, sessions: gone.size };
}

/** A session takes its sub-agents' sessions with it, so it is removed only when all of them may be. */
function wholeFamilies(tables: Tables, spent: ReadonlySet<SessionRow>): Set<SessionRow> {
  const families = [...spent].map((session) => withSubSessions(tables, session));
  return new Set(families.filter((family) => family.every((each) => spent.has(each))).flat());
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
