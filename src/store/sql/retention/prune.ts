import { letOthersRun } from '../../../core/platform.ts';
import type { RetentionPolicy } from '../../contract/store.ts';
import { type RetainedSnapshot, selectVictims } from '../../rules/retention.ts';
import { discardAll, type Pointers, pointerColumns } from '../content/gc-queue.ts';
import type { Dialect } from '../database/dialect.ts';
import type { Driver } from '../database/driver.ts';
import { all, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/open-run.ts';
import { code, fromEvent, fromFinish, fromStatus } from '../values/codes.ts';
import { type CutRow, keepCutsOfSnapshots } from './cuts.ts';
import type { SpentSession } from './erase.ts';
import { readInSteps, snapshotReads } from './pages.ts';

/**
 * Removes what a policy does not keep of some sessions, in small transactions. The rows are chosen before, on one state of the
 * database: a session that uses one of them since then is examined again. Gives the sessions that may go themselves.
 */
export async function pruneSessions(
  db: Driver,
  sessions: readonly number[],
  policy: RetentionPolicy,
  step: (removed: number) => Promise<void>,
): Promise<readonly SpentSession[]> {
  const spent: SpentSession[] = [];
  for (let left = sessions; left.length > 0; ) {
    const some = left;
    const plans: PrunePlan[] = [];
    for (const looked of await readInSteps(db, () => lookAtSessions(some))) {
      plans.push(planPrune(looked, policy));
      await letOthersRun();
    }
    const changed = new Set<number>();
    for (const portions of portionsOf(plans, db.dialect.atOnce)) {
      const tried = portions.filter(({ plan }) => !changed.has(plan.session));
      const removed = await db.write(() => removePortions(tried));
      for (const { plan } of tried) changed.add(plan.session);
      for (const { plan, moves } of removed) {
        changed.delete(plan.session);
        for (const [child, parent] of moves) plan.parents.set(child, parent);
      }
      await step(removed.reduce((sum, { victims }) => sum + victims.size, 0));
    }
    for (const plan of plans) {
      if (!plan.spent || changed.has(plan.session)) continue;
      // Without the rest of the plan: there may be many.
      spent.push({ session: plan.session, head: plan.head, nextIndex: plan.nextIndex });
    }
    left = [...changed];
  }
  return spent;
}

// Choosing -------------------------------------------------------------------------------------------

/** A session with the snapshots that it uses now, and the index of the next one. */
interface UsedRows {
  readonly row_id: number;
  readonly next_index: number;
  readonly head: number | null;
  readonly start: number | null;
  readonly base: number | null;
  readonly own_snapshot: number | null;
}

const usedColumns = 'z.row_id, z.next_index, z.head, r.start, r.base, r.own_snapshot';

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
interface LookedAt {
  readonly session: SessionRow;
  readonly rows: readonly SnapshotRow[];
}

function* lookAtSessions(sessions: readonly number[]): Plan<readonly LookedAt[]> {
  const found = yield* all(selectSessions, JSON.stringify(sessions));
  const bySession = new Map<number, SnapshotRow[]>(found.map((each) => [each.row_id, []]));
  for (const read of readsOf(found)) {
    for (const row of yield* all(...read)) bySession.get(row.session)?.push(row);
  }
  return found.map((session) => ({ session, rows: bySession.get(session.row_id) ?? [] }));
}

/** The rows to remove of a session, as it was when it was looked at. */
interface PrunePlan extends SpentSession {
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

function planPrune({ session, rows }: LookedAt, policy: RetentionPolicy): PrunePlan {
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

// Removing -------------------------------------------------------------------------------------------

/** The part of a plan that one transaction removes. */
interface Portion {
  readonly plan: PrunePlan;
  readonly victims: ReadonlySet<number>;
  /** Rows that stay and hung on a victim, with the nearest ancestor that stays. */
  readonly moves: ReadonlyMap<number, number | null>;
  /** The rows that must be as they were when they were looked at. */
  readonly touched: readonly number[];
}

/** The plans in portions for one transaction each, made when the ones before have been removed. */
function* portionsOf(
  plans: readonly PrunePlan[],
  most: Dialect['atOnce'],
): Iterable<readonly Portion[]> {
  let portions: Portion[] = [];
  let rows = 0;
  for (const plan of plans) {
    for (let from = 0; from < plan.victims.length; ) {
      const victims = plan.victims.slice(from, from + most.rows - rows);
      portions.push(toPortion(plan, new Set(victims)));
      from += victims.length;
      rows += victims.length;
      if (rows < most.rows && portions.length < most.sessions) continue;
      yield portions;
      portions = [];
      rows = 0;
    }
  }
  if (portions.length > 0) yield portions;
}

function toPortion(plan: PrunePlan, victims: ReadonlySet<number>): Portion {
  const moves = new Map<number, number | null>();
  for (const victim of victims) {
    for (const { row_id: child } of plan.children.get(victim) ?? []) {
      if (victims.has(child)) continue;
      let up: number | null = victim;
      while (up !== null && victims.has(up)) up = plan.parents.get(up) ?? null;
      moves.set(child, up);
    }
  }
  const targets = [...moves.values()].filter((parent) => parent !== null);
  return { plan, victims, moves, touched: [...victims, ...moves.keys(), ...targets] };
}

const selectUsed = readUnderLock<UsedRows>(
  'prune_used',
  (d) => `
    SELECT ${usedColumns} FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id
    WHERE z.row_id ${d.integers('$1')} ORDER BY z.row_id ${d.lock('z')}`,
);

interface TouchedRow extends CutRow {
  readonly row_id: number;
  readonly parent: number | null;
  readonly labelled: number;
}

const selectRows = statement<TouchedRow>(
  'prune_check',
  (d) => `
    SELECT s.row_id, s.parent, CASE WHEN s.label IS NULL THEN 0 ELSE 1 END AS labelled, s.view, v.common
    FROM @snapshots s LEFT JOIN @views v ON v.branch = s.branch AND v.row_id = s.view
    WHERE s.row_id ${d.integers('$1')}`,
);
const selectNew = statement<{ row_id: number; parent: number | null }>(
  'prune_new',
  'SELECT row_id, parent FROM @snapshots WHERE session = $1 AND (idx >= $2 OR idx IS NULL)',
);
const moveParents = statement(
  'prune_parents',
  (d) => `UPDATE @snapshots SET parent = m.b FROM ${d.pairs('$1')} m WHERE row_id = m.a`,
);
const deleteRows = statement<Pointers>(
  'prune_rows',
  (d) => `DELETE FROM @snapshots WHERE row_id ${d.integers('$1')} RETURNING ${pointerColumns}`,
);

/** Removes the portions whose sessions are as they were when they were looked at, and gives these portions. */
function* removePortions(portions: readonly Portion[]): Plan<readonly Portion[]> {
  const sessions = JSON.stringify(portions.map(({ plan }) => plan.session));
  const used = new Map((yield* all(selectUsed, sessions)).map((row) => [row.row_id, row]));
  const touched = JSON.stringify([...new Set(portions.flatMap((portion) => portion.touched))]);
  const rows = new Map((yield* all(selectRows, touched)).map((row) => [row.row_id, row]));
  const valid: Portion[] = [];
  for (const portion of portions) {
    const { plan, victims } = portion;
    const isAsPlanned = portion.touched.every((rowId) => {
      const row = rows.get(rowId);
      if (row === undefined || row.parent !== plan.parents.get(rowId)) return false;
      return row.labelled === 0 || !victims.has(rowId) || plan.labelled.has(rowId);
    });
    const now = used.get(plan.session);
    if (isAsPlanned && now !== undefined && !(yield* isUsed(portion, now))) valid.push(portion);
  }
  for (const portion of valid) yield* keepCutsOfSnapshots(portion, rows);
  const pairs = valid.flatMap(({ moves }) => [...moves]);
  if (pairs.length > 0) yield* run(moveParents, JSON.stringify(pairs));
  const victims = valid.flatMap((portion) => [...portion.victims]);
  if (victims.length > 0) yield* discardAll(yield* all(deleteRows, JSON.stringify(victims)));
  return valid;
}

/** Whether the session uses a victim since it was looked at: as its head, in its run, or as the parent of a newer snapshot. */
function* isUsed({ plan, victims }: Portion, now: UsedRows): Plan<boolean> {
  const isVictim = (rowId: number | null): boolean => rowId !== null && victims.has(rowId);
  if ([now.head, now.start, now.base, now.own_snapshot].some(isVictim)) return true;
  if (now.next_index === plan.nextIndex && now.head === plan.head) return false;
  const added = yield* all(selectNew, plan.session, plan.nextIndex);
  return added.some((row) => !plan.parents.has(row.row_id) && isVictim(row.parent));
}
