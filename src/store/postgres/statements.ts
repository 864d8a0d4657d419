import type { QueryConfig, QueryResult } from 'pg';
import type { Dialect } from '../sql/database/dialect.ts';
import type { Plan, Query, SqlValue, Statement } from '../sql/database/query.ts';
import { qualify } from './dialect.ts';

// By Postgres' type numbers. Row numbers and counts stay far below 2^53, so they are numbers here.
const bigint = 20;
const bytea = 17;
const types = {
  getTypeParser(type: number): (text: string) => unknown {
    if (type === bigint || type === 21 || type === 23) return Number;
    if (type === bytea) return (text) => Buffer.from(text.slice(2), 'hex');
    return (text) => text;
  },
};

/** Runs queries: a pool, or one of its connections. */
export interface Queryable {
  query(config: QueryConfig): Promise<QueryResult>;
}

/** A statement that shares its name with others, and the unique name it is prepared under. */
export interface PreparedStatement<Row = unknown> extends Statement<Row> {
  readonly prepared?: string;
}

/** Turns statements into prepared ones, by name unless that is stopped, for the tables of one schema. */
export class Statements {
  readonly #dialect: Dialect;
  readonly #schema: string;
  readonly #onQuery: ((name: string) => void) | undefined;
  readonly #texts = new Map<Statement, string>();
  #isNaming = true;

  constructor(dialect: Dialect, schema: string, onQuery: ((name: string) => void) | undefined) {
    this.#dialect = dialect;
    this.#schema = schema;
    this.#onQuery = onQuery;
  }

  /** From now on, sends each statement without a name: behind a pooler the next one may find another connection. */
  stopNaming(): void {
    this.#isNaming = false;
  }

  async query<Row>(
    on: Queryable,
    statement: PreparedStatement<Row>,
    values: readonly (SqlValue | readonly (string | null)[])[],
  ): Promise<readonly Row[]> {
    this.#onQuery?.(statement.name);
    const config: QueryConfig = {
      // Statements of two stores may share a connection of one pool.
      ...(this.#isNaming && { name: `${this.#schema}.${statement.prepared ?? statement.name}` }),
      text: this.#textOf(statement),
      values: [...values],
      types: types as NonNullable<QueryConfig['types']>,
    };
    const { rows } = await on.query(config);
    return rows as readonly Row[];
  }

  /** Runs a plan, query by query. */
  async run<Result>(on: Queryable, plan: Plan<Result>): Promise<Result> {
    let step = plan.next([]);
    while (step.done !== true) {
      const { statement, values }: Query = step.value;
      // A statement that had to wait for a lock gets the new version of that row, but of all others those of when it began.
      if (statement.underLock === true) await this.query(on, statement, values);
      step = plan.next(await this.query(on, statement, values));
    }
    return step.value;
  }

  #textOf(statement: Statement): string {
    let text = this.#texts.get(statement);
    if (text === undefined) {
      const { text: source, inserted } = statement;
      const own = typeof source === 'string' ? source : source(this.#dialect);
      text = qualify(inserted === undefined ? own : `${own} RETURNING ${inserted}`, this.#schema);
      this.#texts.set(statement, text);
    }
    return text;
  }
}
