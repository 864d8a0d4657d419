import type { RetentionPolicy, Scope } from '../../contract/store.ts';
import type { Database } from '../database/database.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { scopeKey } from '../values/scope.ts';
import { type CutRow, keepCutsOfSnapshots } from './cuts.ts';
import { discardAll, type Pointers, pointerColumns } from './gc-queue.ts';
import {
  listOf,
  lookAtSessions,
  type PrunePlan,
  planPrune,
  type UsedRows,
  usedColumns,
} from './prune-plan.ts';

const selectSessions = statement<{ row_id: number }>(
  'prune_sessions',
  'SELECT row_id FROM @sessions WHERE row_id > $1 ORDER BY row_id LIMIT 100',
);
const selectSessionsOf = statement<{ row_id: number }>(
  'prune_sessions_of',
  'SELECT row_id FROM @sessions WHERE row_id > $1 AND owner = $2 AND agent = $3 ORDER BY row_id LIMIT 100',
);

/** The numbers of the sessions after one, a hundred at a time. */
export function* sessionsAfter(rowId: number, scope?: Scope): Plan<readonly number[]> {
  const rows =
    scope === undefined
      ? yield* all(selectSessions, rowId)
      : yield* all(selectSessionsOf, rowId, ...scopeKey(scope));
  return rows.map((row) => row.row_id);
}

const countAll = statement<{ count: number }>(
  'prune_count',
  'SELECT COUNT(*) AS count FROM @sessions',
);
const countOf = statement<{ count: number }>(
  'prune_count_of',
  'SELECT COUNT(*) AS count FROM @sessions WHERE owner = $1 AND agent = $2',
);

/** How many sessions there are. */
export function* countSessions(scope?: Scope): Plan<number> {
  const { count } =
    scope === undefined ? yield* one(countAll) : yield* one(countOf, ...scopeKey(scope));
  return count;
}

/** The part of a plan that one transaction removes. */
interface Portion {
  readonly plan: PrunePlan;
  readonly victims: ReadonlySet<number>;
}

/**
 * Removes what a policy does not keep of some sessions, in small transactions. The rows are chosen before, on one state of the
 * database: a session that uses one of them since then is examined again. Gives the plans of those that may go themselves.
 */
export async function pruneSessions(
  db: Database,
  sessions: readonly number[],
  policy: RetentionPolicy,
  step: (removed: number) => Promise<void>,
): Promise<readonly PrunePlan[]> {
  const spent: PrunePlan[] = [];
  let left = sessions;
  while (left.length > 0) {
    const some = left;
    const plans = await planPrune(await db.readInSteps(() => lookAtSessions(some)), policy);
    const changed = new Set<number>();
    for (const portions of portionsOf(plans, db.dialect.atOnce)) {
      const unchanged = portions.filter(({ plan }) => !changed.has(plan.session));
      const done = await db.write(() => removePortions(unchanged));
      for (const session of done.changed) changed.add(session);
      for (const { plan, moves } of done.moved) {
        for (const [child, parent] of moves) plan.parents.set(child, parent);
      }
      await step(done.removed);
    }
    spent.push(...plans.filter((each) => each.spent && !changed.has(each.session)));
    left = [...changed];
  }
  return spent;
}

function* portionsOf(
  plans: readonly PrunePlan[],
  most: Dialect['atOnce'],
): Iterable<readonly Portion[]> {
  let portions: Portion[] = [];
  let rows = 0;
  for (const plan of plans) {
    for (let from = 0; from < plan.victims.length; ) {
      const victims = new Set(plan.victims.slice(from, from + most.rows - rows));
      portions.push({ plan, victims });
      from += victims.size;
      rows += victims.size;
      if (rows < most.rows && portions.length < most.sessions) continue;
      yield portions;
      portions = [];
      rows = 0;
    }
  }
  if (portions.length > 0) yield portions;
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

interface Move extends Portion {
  /** Rows that stay and hung on a victim, with the nearest ancestor that stays. */
  readonly moves: ReadonlyMap<number, number | null>;
}

/** What a transaction did, and the sessions that are not as they were when they were looked at. */
interface Removed {
  readonly removed: number;
  readonly moved: readonly Move[];
  readonly changed: readonly number[];
}

function* removePortions(portions: readonly Portion[]): Plan<Removed> {
  const sessions = JSON.stringify(portions.map(({ plan }) => plan.session));
  const used = new Map((yield* all(selectUsed, sessions)).map((row) => [row.row_id, row]));
  const moves = portions.map((portion) => ({ ...portion, moves: movesOf(portion) }));
  const touched = [...new Set(moves.flatMap(touchedBy))];
  const rows = new Map(
    (yield* all(selectRows, JSON.stringify(touched))).map((row) => [row.row_id, row]),
  );
  const valid: Move[] = [];
  for (const move of moves) {
    const isAsPlanned = touchedBy(move).every((rowId) => {
      const row = rows.get(rowId);
      const { parents, labelled } = move.plan;
      if (row === undefined || row.parent !== parents.get(rowId)) return false;
      return row.labelled === 0 || !move.victims.has(rowId) || labelled.has(rowId);
    });
    const now = used.get(move.plan.session);
    if (isAsPlanned && now !== undefined && !(yield* isUsed(move, now))) valid.push(move);
  }
  for (const move of valid) yield* keepCutsOfSnapshots(move, rows);
  const pairs = valid.flatMap((move) => [...move.moves]);
  if (pairs.length > 0) yield* run(moveParents, JSON.stringify(pairs));
  const victims = valid.flatMap((move) => [...move.victims]);
  if (victims.length > 0) yield* discardAll(yield* all(deleteRows, JSON.stringify(victims)));
  return {
    removed: victims.length,
    moved: valid,
    changed: moves.filter((move) => !valid.includes(move)).map((move) => move.plan.session),
  };
}

/** Whether the session uses a victim since it was looked at: as its head, in its run, or as the parent of a newer snapshot. */
function* isUsed({ plan, victims }: Move, now: UsedRows): Plan<boolean> {
  const isVictim = (rowId: number | null): boolean => rowId !== null && victims.has(rowId);
  if ([now.head, now.start, now.base, now.own_snapshot].some(isVictim)) return true;
  if (now.next_index === plan.nextIndex && now.head === plan.head) return false;
  const added = yield* all(selectNew, plan.session, plan.nextIndex);
  return added.some((row) => !plan.parents.has(row.row_id) && isVictim(row.parent));
}

/** Survivors hang on their nearest ancestor that stays. */
function movesOf({ plan, victims }: Portion): ReadonlyMap<number, number | null> {
  const moves = new Map<number, number | null>();
  for (const victim of victims) {
    for (const child of listOf(plan.children.get(victim) ?? [])) {
      if (victims.has(child)) continue;
      let up: number | null = victim;
      while (up !== null && victims.has(up)) up = plan.parents.get(up) ?? null;
      moves.set(child, up);
    }
  }
  return moves;
}

function touchedBy({ victims, moves }: Move): readonly number[] {
  const targets = [...moves.values()].filter((parent) => parent !== null);
  return [...victims, ...moves.keys(), ...targets];
}
