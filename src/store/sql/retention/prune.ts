import type { RetentionPolicy, Scope } from '../../contract/store.ts';
import { type RetainedSession, selectVictims } from '../../rules/retention.ts';
import {
  all,
  first,
  type Plan,
  readUnderLock,
  run,
  type SqlValue,
  statement,
} from '../database/query.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/holder.ts';
import { uuidText } from '../values/bytes.ts';
import { code, fromEvent, fromFinish, fromStatus } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { dropSnapshot } from './gc-queue.ts';

interface SessionRow extends HolderRow {
  readonly row_id: number;
  readonly id: string;
  readonly updated_at: number;
  readonly head: number | null;
  readonly start: number | null;
  readonly base: number | null;
  readonly own_snapshot: number | null;
}

interface VictimRow {
  readonly row_id: number;
  /** `null`: a checkpoint, which is its run's. */
  readonly id: Uint8Array | null;
  readonly parent: number | null;
  readonly idx: number | null;
  readonly status: number;
  readonly event: number;
  readonly finish: number | null;
  readonly label: SqlValue;
  readonly updated_at: number;
}

const selectSessions = statement<{ row_id: number }>(
  'prune_sessions',
  'SELECT row_id FROM @sessions WHERE row_id > $1 ORDER BY row_id LIMIT 100',
);
const selectSessionsOf = statement<{ row_id: number }>(
  'prune_sessions_of',
  'SELECT row_id FROM @sessions WHERE row_id > $1 AND owner = $2 AND agent = $3 ORDER BY row_id LIMIT 100',
);
const selectSession = readUnderLock<SessionRow>(
  'prune_session',
  (d) => `
    SELECT ${d.now} AS now, z.row_id, z.id, z.updated_at, z.head, r.start, r.base, r.own_snapshot, ${holderColumns}
    FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.row_id = $1 ${d.lock('z')}`,
);
const selectSnapshots = statement<VictimRow>(
  'prune_snapshots',
  `SELECT row_id, id, parent, idx, status, event, finish, label, updated_at FROM @snapshots
   WHERE session = $1 ORDER BY row_id`,
);
const moveParent = statement('prune_parent', 'UPDATE @snapshots SET parent = $2 WHERE row_id = $1');

/** The numbers of the sessions after one, a hundred at a time. */
export function* sessionsAfter(rowId: number, scope: Scope | undefined): Plan<readonly number[]> {
  const rows =
    scope === undefined
      ? yield* all(selectSessions, rowId)
      : yield* all(selectSessionsOf, rowId, ...scopeKey(scope));
  return rows.map((row) => row.row_id);
}

/** What pruning a session once did. */
export interface Pruned {
  readonly removed: number;
  /** There is more to remove. */
  readonly more: boolean;
  /** The session itself may go. */
  readonly spent: boolean;
}

/** Snapshots that one step removes. */
const batch = 200;

/** Removes some of what a policy does not keep of one session; in a transaction, so that no turn can continue from a deleted snapshot. */
export function* pruneSession(rowId: number, policy: RetentionPolicy): Plan<Pruned> {
  const session = yield* first(selectSession, rowId);
  if (session === undefined) return { removed: 0, more: false, spent: false };
  const rows = yield* all(selectSnapshots, rowId);
  const { victims, dropSession } = selectVictims(toRetained(session, rows), policy, session.now);
  const doomed = rows.filter(({ id }) => id !== null && victims.has(uuidText(id)));
  const now = new Set(doomed.slice(0, batch).map((row) => row.row_id));
  yield* reparent(rows, now);
  for (const victim of now) yield* dropSnapshot(victim);
  return { removed: now.size, more: doomed.length > now.size, spent: dropSession };
}

function toRetained(session: SessionRow, rows: readonly VictimRow[]): RetainedSession {
  const ids = new Map(
    rows.map(({ row_id: rowId, id }) => [rowId, id === null ? undefined : uuidText(id)]),
  );
  const idOf = (rowId: number | null): string | undefined =>
    rowId === null ? undefined : ids.get(rowId);
  return {
    sessionId: session.id,
    updatedAt: session.updated_at,
    headId: idOf(session.head),
    held: [idOf(session.start), idOf(session.base)],
    running: isHeld(session),
    snapshots: rows.filter(isSnapshot).map((row) => ({
      snapshotId: uuidText(row.id),
      parentId: idOf(row.parent),
      index: row.idx ?? -1,
      // One that will not end any more.
      status:
        row.status === code.pending && row.row_id !== session.own_snapshot
          ? 'expired'
          : fromStatus(row.status),
      event: fromEvent(row.event),
      finishReason: fromFinish(row.finish),
      label: row.label === null ? undefined : 'labelled',
      updatedAt: row.updated_at,
    })),
  };
}

function isSnapshot(row: VictimRow): row is VictimRow & { readonly id: Uint8Array } {
  return row.id !== null;
}

/** Survivors hang on their nearest ancestor that stays. */
function* reparent(rows: readonly VictimRow[], victims: ReadonlySet<number>): Plan<void> {
  const parents = new Map(rows.map((row) => [row.row_id, row.parent]));
  for (const { row_id: rowId, parent } of rows) {
    if (victims.has(rowId) || parent === null || !victims.has(parent)) continue;
    let up: number | null = parent;
    while (up !== null && victims.has(up)) up = parents.get(up) ?? null;
    yield* run(moveParent, rowId, up);
  }
}
