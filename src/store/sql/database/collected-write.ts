import type { Plan, SqlValue, Statement } from './query.ts';

/** A parameter that is the number of a row: the one in the answer to another query of the same write. */
export interface RowOf {
  /** The place of that query in the write. */
  readonly rowOf: number;
}

/** Whether a parameter is the number of a row. */
export function isRowOf(value: SqlValue | RowOf): value is RowOf {
  return typeof value === 'object' && value !== null && 'rowOf' in value;
}

/** A query of a guarded write. */
export interface CollectedQuery {
  readonly statement: Statement;
  readonly values: readonly (SqlValue | RowOf)[];
}

// Below the numbers of all rows, and small enough that the ids of the messages of such a branch are exact.
const lowest = -(2 ** 30);
/** A placeholder for the number of the row that the query at this place gives, until that is known. */
export const placeholder = (place: number): number => lowest - place;

/**
 * Collects the queries of a guarded write without running them, so that a driver can send them at once. `undefined` when the plan has a
 * query that the driver does not accept; then it runs the plan query by query.
 */
export function collectWrite(
  plan: Plan<unknown>,
  accepts: (statement: Statement) => boolean,
): readonly CollectedQuery[] | undefined {
  const queries: CollectedQuery[] = [];
  let step = plan.next([]);
  while (step.done !== true) {
    const { statement, values } = step.value;
    if (!accepts(statement)) return undefined;
    queries.push({ statement, values: values.map(toParameter) });
    step = plan.next([{ row_id: placeholder(queries.length - 1) }]);
  }
  return queries;
}

/** A value of a plan, in which a placeholder is what it stands for. */
export function toParameter(value: SqlValue): SqlValue | RowOf {
  return typeof value === 'number' && value <= lowest ? { rowOf: lowest - value } : value;
}

/** Runs the plan of a guarded write again, with the rows that its queries gave. */
export function concludeWrite<Result>(
  plan: Plan<Result>,
  queries: readonly CollectedQuery[],
  rowsOf: (place: number) => readonly unknown[],
): Result {
  let place = 0;
  let step = plan.next([]);
  while (step.done !== true) {
    const { name } = step.value.statement;
    if (queries[place]?.statement.name !== name) {
      throw new TypeError(
        `A guarded write got to "${name}" by an answer. Its queries must not depend on answers.`,
      );
    }
    step = plan.next(rowsOf(place++));
  }
  return step.value;
}
