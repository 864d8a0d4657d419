import type { RetentionPolicy } from '../../contract/store.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { pausing } from '../../rules/maintenance-steps.ts';
import {
  type RetainedSession,
  type RetainedSnapshot,
  selectInSteps,
} from '../../rules/retention.ts';
import { all, type Plan, type SqlValue, statement } from '../database/query.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/holder.ts';
import { code, fromEvent, fromFinish, fromStatus } from '../values/codes.ts';
import { groupsOf } from './session-groups.ts';

interface SessionRow extends HolderRow, UsedRows {
  readonly id: string;
  readonly updated_at: number;
}

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

interface SnapshotRow {
  readonly session: number;
  readonly row_id: number;
  /** 0: a checkpoint, which is its run's. */
  readonly has_id: number;
  readonly parent: number | null;
  readonly idx: number | null;
  readonly status: number;
  readonly event: number;
  readonly finish: number | null;
  readonly label: SqlValue;
  readonly updated_at: number;
}

const selectSessions = statement<SessionRow>(
  'prune_look',
  (d) => `
    SELECT ${d.now} AS now, z.id, z.updated_at, ${usedColumns}, ${holderColumns}
    FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.row_id ${d.integers('$1')} ORDER BY z.row_id`,
);
const columns = `session, row_id, CASE WHEN id IS NULL THEN 0 ELSE 1 END AS has_id, parent, idx, status, event, finish, label,
  updated_at`;
const selectAll = statement<SnapshotRow>(
  'prune_snapshots',
  (d) =>
    `SELECT ${columns} FROM @snapshots WHERE session ${d.integers('$1')} ORDER BY session, row_id`,
);
const selectListed = statement<SnapshotRow>(
  'prune_listed',
  `SELECT ${columns} FROM @snapshots WHERE session = $1 AND idx >= $2 AND idx < $3 ORDER BY idx`,
);
const selectUnlisted = statement<SnapshotRow>(
  'prune_unlisted',
  `SELECT ${columns} FROM @snapshots WHERE session = $1 AND idx IS NULL`,
);

/** What is to be removed of a session, as it was when it was looked at. */
export interface PrunePlan {
  readonly session: number;
  readonly nextIndex: number;
  readonly head: number | null;
  /** The rows to remove, parents first. */
  readonly victims: readonly number[];
  /** Those of them that have a label. */
  readonly labelled: ReadonlySet<number>;
  /** The parents of all rows, as long as nothing is removed, and the rows that hang on each victim. */
  readonly parents: Map<number, number | null>;
  readonly children: ReadonlyMap<number, Children>;
  /** The session itself may go. */
  readonly spent: boolean;
}

/** The rows that hang on a victim: most often one, for which there need not be a list. */
export type Children = number | readonly number[];

/** Snapshots that one statement reads. */
const batch = 400;

/** A session and its snapshots, as they were when they were looked at. */
export interface LookedAt {
  readonly session: SessionRow;
  readonly rows: readonly SeenSnapshot[];
}

/**
 * A snapshot as it was when it was looked at. A session may have many, and turns wait while V8 moves them: of the row only what is needed is
 * kept, and snapshots are named by their rows.
 */
class SeenSnapshot implements RetainedSnapshot<number> {
  readonly session: number;
  readonly snapshotId: number;
  readonly parentId: number | undefined;
  readonly isCheckpoint: boolean;
  readonly index: number;
  readonly status: RetainedSnapshot['status'];
  readonly event: RetainedSnapshot['event'];
  readonly finishReason: RetainedSnapshot['finishReason'];
  readonly label: string | undefined;
  readonly updatedAt: number;

  constructor(row: SnapshotRow, ownSnapshot: number | null) {
    this.session = row.session;
    this.snapshotId = row.row_id;
    this.parentId = row.parent ?? undefined;
    this.isCheckpoint = row.has_id === 0;
    this.index = row.idx ?? -1;
    // One that will not end any more.
    const isExpired = row.status === code.pending && row.row_id !== ownSnapshot;
    this.status = isExpired ? 'expired' : fromStatus(row.status);
    this.event = fromEvent(row.event);
    this.finishReason = fromFinish(row.finish);
    this.label = row.label === null ? undefined : 'labelled';
    this.updatedAt = row.updated_at;
  }
}

/** Looks at some sessions. */
export function* lookAtSessions(sessions: readonly number[]): Plan<readonly LookedAt[]> {
  const rows = yield* all(selectSessions, JSON.stringify(sessions));
  const found: LookedAt[] = [];
  for (const group of groupsOf(rows, batch)) {
    const snapshots = Map.groupBy(yield* snapshotsOf(group), (row) => row.session);
    for (const session of group) {
      found.push({ session, rows: snapshots.get(session.row_id) ?? [] });
    }
  }
  return found;
}

/** Says what is to be removed of some sessions; those of which nothing is are left out. Among many rows it pauses now and then. */
export async function planPrune(
  looked: readonly LookedAt[],
  policy: RetentionPolicy,
): Promise<readonly PrunePlan[]> {
  const plans: PrunePlan[] = [];
  let left = batch;
  for (const { session, rows } of looked) {
    const steps = planOf(session, rows, policy);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) if (rows.length > batch) await betweenSteps();
    if (step.value.victims.length > 0 || step.value.spent) plans.push(step.value);
    left -= rows.length;
    if (left > 0) continue;
    await betweenSteps();
    left = batch;
  }
  return plans;
}

function* snapshotsOf(group: readonly SessionRow[]): Plan<readonly SeenSnapshot[]> {
  const own = new Map(group.map((session) => [session.row_id, session.own_snapshot]));
  const found: SeenSnapshot[] = [];
  const add = (rows: readonly SnapshotRow[]): void => {
    for (const row of rows) found.push(new SeenSnapshot(row, own.get(row.session) ?? null));
  };
  const [only] = group;
  if (only === undefined || group.length > 1 || only.next_index <= batch) {
    add(yield* all(selectAll, JSON.stringify(group.map((each) => each.row_id))));
    return found;
  }
  for (let from = 0; from < only.next_index; from += batch) {
    add(yield* all(selectListed, only.row_id, from, from + batch));
  }
  add(yield* all(selectUnlisted, only.row_id));
  return found;
}

function* planOf(
  session: SessionRow,
  rows: readonly SeenSnapshot[],
  policy: RetentionPolicy,
): Generator<undefined, PrunePlan> {
  const retained = yield* toRetained(session, rows);
  const { victims, dropSession } = yield* selectInSteps(retained, policy, session.now);
  const doomed: number[] = [];
  const labelled = new Set<number>();
  const parents = new Map<number, number | null>();
  const children = new Map<number, number | number[]>();
  for (const row of pausing(rows)) {
    if (row === undefined) {
      yield;
      continue;
    }
    const { snapshotId: rowId, parentId: parent } = row;
    parents.set(rowId, parent ?? null);
    if (victims.has(rowId)) {
      doomed.push(rowId);
      if (row.label !== undefined) labelled.add(rowId);
    }
    if (parent !== undefined && victims.has(parent)) {
      const siblings = children.get(parent);
      if (siblings === undefined) children.set(parent, rowId);
      else if (typeof siblings === 'number') children.set(parent, [siblings, rowId]);
      else siblings.push(rowId);
    }
  }
  return {
    session: session.row_id,
    nextIndex: session.next_index,
    head: session.head,
    victims: doomed.sort((a, b) => a - b),
    labelled,
    parents,
    children,
    spent: dropSession,
  };
}

/** Children as a list. */
export function listOf(children: Children): readonly number[] {
  return typeof children === 'number' ? [children] : children;
}

function* toRetained(
  session: SessionRow,
  rows: readonly SeenSnapshot[],
): Generator<undefined, RetainedSession<number>> {
  const snapshots: SeenSnapshot[] = [];
  for (const row of pausing(rows)) {
    if (row === undefined) yield;
    else if (!row.isCheckpoint) snapshots.push(row);
  }
  return {
    sessionId: session.id,
    updatedAt: session.updated_at,
    headId: session.head ?? undefined,
    held: [session.start ?? undefined, session.base ?? undefined],
    running: isHeld(session),
    snapshots,
  };
}
