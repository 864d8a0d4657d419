import { letOthersRun } from '../../../core/platform.ts';
import type { Scope } from '../../contract/store.ts';
import { toReadError } from '../../rules/errors.ts';
import { checkForward } from '../database/check-forward.ts';
import type { Dialect } from '../database/dialect.ts';
import type { Driver } from '../database/driver.ts';
import {
  all,
  one,
  type Plan,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import { scopeKey } from '../values/scope.ts';

/** Numbers of rows in order, a page at a time, so that what is written meanwhile is not waited for. */
export async function* pagesOf(
  db: Driver,
  page: (after: number) => Plan<readonly number[]>,
  from = 0,
): AsyncGenerator<readonly number[], void, undefined> {
  for (let after = from; ; ) {
    const at = after;
    const found = await db.read(() => page(at));
    const last = found.at(-1);
    if (last === undefined) return;
    checkForward([last], [after]);
    yield found;
    after = last;
  }
}

/**
 * Runs a long plan that only reads, query by query, and lets turns run after each: the queries may see different states of the
 * database.
 */
export async function readInSteps<Result>(db: Driver, plan: () => Plan<Result>): Promise<Result> {
  try {
    const running = plan();
    let step = running.next([]);
    while (step.done !== true) {
      const { statement: which, values } = step.value;
      const rows = await db.read(() => all(which, ...values));
      await letOthersRun();
      step = running.next(rows);
    }
    return step.value;
  } catch (error) {
    throw toReadError(error);
  }
}

const selectSessions = statement<{ row_id: number }>(
  'prune_sessions',
  'SELECT row_id FROM @sessions WHERE row_id > $1 ORDER BY row_id LIMIT 100',
);
const selectSessionsOf = statement<{ row_id: number }>(
  'prune_sessions_of',
  'SELECT row_id FROM @sessions WHERE row_id > $1 AND owner = $2 AND agent = $3 ORDER BY row_id LIMIT 100',
);
const countAll = statement<{ count: number }>(
  'prune_count',
  'SELECT COUNT(*) AS count FROM @sessions',
);
const countOf = statement<{ count: number }>(
  'prune_count_of',
  'SELECT COUNT(*) AS count FROM @sessions WHERE owner = $1 AND agent = $2',
);

/** The numbers of the sessions after one, a hundred at a time. */
export function* sessionsAfter(rowId: number, scope?: Scope): Plan<readonly number[]> {
  const rows =
    scope === undefined
      ? yield* all(selectSessions, rowId)
      : yield* all(selectSessionsOf, rowId, ...scopeKey(scope));
  return rows.map((row) => row.row_id);
}

/** The number of sessions, of all or of a scope. */
export function* countSessions(scope?: Scope): Plan<number> {
  const { count } =
    scope === undefined ? yield* one(countAll) : yield* one(countOf, ...scopeKey(scope));
  return count;
}

/** A session and the index of its next snapshot, which says how many it has at most. */
interface SizedSession {
  readonly row_id: number;
  readonly next_index: number;
}

/** Reads a part of the snapshots of some sessions. */
type Read<Row> = readonly [which: Statement<Row>, ...values: SqlValue[]];

/**
 * Statements that read the snapshots `s` of sessions, about a batch of rows each: those of several short sessions at once, and those of a
 * long one in parts.
 */
export function snapshotReads<Row>(
  name: string,
  batch: number,
  select: (d: Dialect) => string,
): (sessions: readonly SizedSession[]) => readonly Read<Row>[] {
  const readAll = statement<Row>(
    `${name}_snapshots`,
    (d) => `${select(d)} WHERE s.session ${d.integers('$1')} ORDER BY s.session, s.row_id`,
  );
  const readListed = statement<Row>(
    `${name}_listed`,
    (d) => `${select(d)} WHERE s.session = $1 AND s.idx >= $2 AND s.idx < $3 ORDER BY s.idx`,
  );
  const readUnlisted = statement<Row>(
    `${name}_unlisted`,
    (d) => `${select(d)} WHERE s.session = $1 AND s.idx IS NULL`,
  );
  return (sessions) => {
    const reads: Read<Row>[] = [];
    let group: number[] = [];
    let size = 0;
    const endGroup = (): void => {
      if (group.length > 0) reads.push([readAll, JSON.stringify(group)]);
      group = [];
      size = 0;
    };
    for (const { row_id: rowId, next_index: end } of sessions) {
      // With its head and a checkpoint, which are not listed.
      if (size + end + 2 > batch) endGroup();
      if (end <= batch) {
        group.push(rowId);
        size += end + 2;
        continue;
      }
      for (let from = 0; from < end; from += batch) {
        reads.push([readListed, rowId, from, from + batch]);
      }
      reads.push([readUnlisted, rowId]);
    }
    endGroup();
    return reads;
  };
}
