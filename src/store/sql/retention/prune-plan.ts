import type { RetentionPolicy } from '../../contract/store.ts';
import { type RetainedSnapshot, selectVictims } from '../../rules/retention.ts';
import { all, type Plan, statement } from '../database/query.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/holder.ts';
import { code, fromEvent, fromFinish, fromStatus } from '../values/codes.ts';
import type { SpentSession } from './erase.ts';
import { snapshotReads } from './pages.ts';

/** A session with the snapshots that it uses now, and the index of the next one. */
export interface UsedRows {
  readonly row_id: number;
  readonly next_index: number;
  readonly head: number | null;
  readonly start: number | null;
  readonly base: number | null;
  readonly own_snapshot: number | null;
}

export const usedColumns = 'z.row_id, z.next_index, z.head, r.start, r.base, r.own_snapshot';

interface SessionRow extends HolderRow, UsedRows {
  readonly id: string;
  readonly updated_at: number;
}

interface SnapshotRow {
  readonly session: number;
  readonly row_id: number;
  /** 0: a checkpoint, which belongs to its run. */
  readonly has_id: number;
  readonly parent: number | null;
  readonly idx: number | null;
  readonly status: number;
  readonly event: number;
  readonly finish: number | null;
  readonly labelled: number;
  readonly updated_at: number;
}

const selectSessions = statement<SessionRow>(
  'prune_look',
  (d) => `
    SELECT ${d.now} AS now, z.id, z.updated_at, ${usedColumns}, ${holderColumns}
    FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.row_id ${d.integers('$1')} ORDER BY z.row_id`,
);
const readsOf = snapshotReads<SnapshotRow>(
  'prune',
  400,
  () => `
    SELECT s.session, s.row_id, CASE WHEN s.id IS NULL THEN 0 ELSE 1 END AS has_id, s.parent, s.idx, s.status, s.event, s.finish,
      CASE WHEN s.label IS NULL THEN 0 ELSE 1 END AS labelled, s.updated_at FROM @snapshots s`,
);

/** A session and its snapshots, as they were when they were looked at. */
export interface LookedAt {
  readonly session: SessionRow;
  readonly rows: readonly SnapshotRow[];
}

/** Looks at some sessions. */
export function* lookAtSessions(sessions: readonly number[]): Plan<readonly LookedAt[]> {
  const found = yield* all(selectSessions, JSON.stringify(sessions));
  const bySession = new Map<number, SnapshotRow[]>(found.map((each) => [each.row_id, []]));
  for (const read of readsOf(found)) {
    for (const row of yield* all(...read)) bySession.get(row.session)?.push(row);
  }
  return found.map((session) => ({ session, rows: bySession.get(session.row_id) ?? [] }));
}

/** The rows to remove of a session, as it was when it was looked at. */
export interface PrunePlan extends SpentSession {
  /** Parents first. */
  readonly victims: readonly number[];
  /** The rows that have a label. */
  readonly labelled: ReadonlySet<number>;
  /** The parents of all rows, as long as nothing is removed, and the rows that hang on each victim. */
  readonly parents: Map<number, number | null>;
  readonly children: ReadonlyMap<number | null, readonly { readonly row_id: number }[]>;
  /** The session itself may go. */
  readonly spent: boolean;
}

/** Decides which rows of a session go. */
export function planPrune({ session, rows }: LookedAt, policy: RetentionPolicy): PrunePlan {
  const { head, start, base, own_snapshot: own } = session;
  const retained = {
    sessionId: session.id,
    updatedAt: session.updated_at,
    headId: head ?? undefined,
    held: [start ?? undefined, base ?? undefined],
    running: isHeld(session),
    snapshots: rows.filter((row) => row.has_id === 1).map((row) => toRetained(row, own)),
  };
  const { victims, dropSession } = selectVictims(retained, policy, session.now);
  const isOnVictim = ({ parent }: SnapshotRow): boolean => parent !== null && victims.has(parent);
  return {
    session: session.row_id,
    nextIndex: session.next_index,
    head,
    victims: [...victims].sort((a, b) => a - b),
    labelled: new Set(rows.filter((row) => row.labelled === 1).map((row) => row.row_id)),
    parents: new Map(rows.map((row) => [row.row_id, row.parent])),
    children: Map.groupBy(rows.filter(isOnVictim), (row) => row.parent),
    spent: dropSession,
  };
}

function toRetained(row: SnapshotRow, ownSnapshot: number | null): RetainedSnapshot<number> {
  // No run will end it any more.
  const isExpired = row.status === code.pending && row.row_id !== ownSnapshot;
  return {
    snapshotId: row.row_id,
    parentId: row.parent ?? undefined,
    index: row.idx ?? -1,
    status: isExpired ? 'expired' : fromStatus(row.status),
    event: fromEvent(row.event),
    finishReason: fromFinish(row.finish),
    label: row.labelled === 1 ? 'labelled' : undefined,
    updatedAt: row.updated_at,
  };
}
