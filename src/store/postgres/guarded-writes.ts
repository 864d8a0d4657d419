import { createHash } from 'node:crypto';
import type { ClientBase, QueryResult } from 'pg';
import { codeOf } from '../../core/error.ts';
import {
  type CollectedQuery,
  collectWrite,
  concludeWrite,
  isRowOf,
  type RowOf,
} from '../sql/database/collected-write.ts';
import {
  type Plan,
  Refused,
  type SqlValue,
  type Statement,
  statement,
} from '../sql/database/query.ts';
import { frequentStatements, guardedStatements } from '../sql/runs/guarded-statements.ts';
import { hexOf } from '../sql/values/bytes.ts';
import { lockKey, now, postgresDialect, qualify } from './dialect.ts';
import { isForbidden } from './errors.ts';
import { steps } from './schema.ts';
import type { PreparedStatement } from './statements.ts';

/*
 * A guarded write is one call of a function that is made of the statements of all such writes, so it takes one round trip. Each
 * statement of the function sees what the ones before it have locked, in their newest version, as in a transaction of single statements.
 */

const tell = statement('hint', 'SELECT pg_notify($1, $2)');

const statements: readonly Statement[] = [...guardedStatements, tell];
export const numberOf: ReadonlyMap<Statement, number> = new Map(
  statements.map((each, number) => [each, number]),
);
/** By number, whether a statement has an answer. */
const answering = statements.map(
  (each) => each.onlyLocks !== true && /^SELECT|RETURNING/.test(textOf(each, '')),
);

/** The text of a statement in Postgres' words, with the tables of no schema yet. */
function textOf({ text, inserted, guards }: Statement, schema: string): string {
  const own = (typeof text === 'string' ? text : text(postgresDialect(schema))).trim();
  // Whether a guard has inserted its row is known without the row.
  if (guards === true && own.includes('INSERT INTO')) return own.replace(/ RETURNING \w+$/, '');
  return inserted === undefined ? own : `${own} RETURNING ${inserted}`;
}

/** A function with these variables, besides those of every write, and this code. `_durable` is one of its parameters. */
export function bodyWith(variables: string, code: string): string {
  return `
DECLARE
  ${variables}
  _fact record;
  _answers text[] := '{}';
  _wrote boolean := false;
  _setting text;
  _moment bigint := ${now};
BEGIN
  IF NOT _durable THEN _setting := set_config('synchronous_commit', 'off', true); END IF;
  ${code}
  RETURN '[' || array_to_string(_answers, ',', 'null') || ']';
END`;
}

/** The code that runs a statement by its number, with its parameters written in these words. */
export function codeFor(
  number: number,
  schema: string,
  parameterAt: (place: number) => string,
): string {
  const each = statementAt(number);
  const text = textOf(each, schema)
    .replaceAll(now, '_moment')
    .replace(/\$(\d+)/g, (_, place) => parameterAt(Number(place)));
  const gives = answering[number] === true;
  const run = runOf(each, text, gives);
  if (each.unlessFound !== true) return run;
  return `IF NOT FOUND THEN ${run} ${gives ? 'ELSE _answers := _answers || NULL::text;' : ''} END IF;`;
}

function statementAt(number: number): Statement {
  const found = statements[number];
  if (found === undefined) throw new TypeError(`There is no statement ${number}.`);
  return found;
}

/** The body of the function for every write, for statements whose parameters have these types. */
function bodyOf(schema: string, types: readonly (readonly string[])[]): string {
  const cases = statements.map((_, number) =>
    codeFor(number, schema, (place) => parameter(place, types[number] ?? [])),
  );
  return bodyWith(
    `_at integer := 1;
  _which integer;     -- the number of a statement
  _base integer;      -- where the parameters of a statement begin
  _fills integer;     -- how many parameters get the number of the row that it adds`,
    `WHILE _at <= cardinality(_calls) LOOP
    _base := _calls[_at + 1];
    _fills := _calls[_at + 2];
    _which := _calls[_at];
    ${choose(cases, 0, cases.length)}
    IF _fills > 0 THEN
      FOR _fill IN 1.._fills LOOP _numbers[_calls[_at + 2 + _fill]] := _fact.row_id; END LOOP;
    END IF;
    _at := _at + 3 + _fills;
  END LOOP;`,
  );
}

/** Runs the case whose number is `_which`: a frequent one, or one found by halves. Each comparison costs something once in each call. */
function choose(cases: readonly string[], from: number, to: number): string {
  if (to - from === 1) return cases[from] ?? '';
  const next = from < frequentStatements.length ? from + 1 : (from + to) >> 1;
  return `IF _which < ${next} THEN ${choose(cases, from, next)} ELSE ${choose(cases, next, to)} END IF;`;
}

function parameter(place: number, types: readonly string[]): string {
  const type = types[place - 1] ?? '';
  const at = `[_base + ${place}]`;
  if (/int/.test(type)) return `_numbers${at}::${type}`;
  return type === 'bytea' ? `decode(_texts${at}, 'hex')` : `_texts${at}::${type}`;
}

const noteAnswer = '_answers := _answers || CASE WHEN FOUND THEN row_to_json(_fact)::text END;';

function runOf({ onlyLocks, guards }: Statement, text: string, gives: boolean): string {
  // Later statements have waited for the lock, which may take longer than a claim lasts.
  if (onlyLocks === true) return `${text.replace(/^SELECT/, 'PERFORM')}; _moment := ${now};`;
  if (guards === true) {
    // Nothing is left behind, and nothing is logged as an error unless there is something to take back.
    const refuse = `IF NOT FOUND THEN IF _wrote THEN RAISE EXCEPTION 'refused' USING ERRCODE = '${refusedCode}'; END IF; RETURN NULL; END IF;`;
    return gives
      ? `${text} INTO _fact; ${refuse} ${noteAnswer}`
      : `${text}; ${refuse} _wrote := true;`;
  }
  return gives ? `${text} INTO _fact; ${noteAnswer} _wrote := _wrote OR FOUND;` : `${text};`;
}

const refusedCode = 'WM409';

/**
 * The name of a function for writes. Processes of another version use functions of their own, so the name says which statements it runs, and
 * for tables of which format: a column of another type makes another function.
 */
export function nameFor(body: string): string {
  const hash = createHash('sha256').update(String(steps.length)).update(body).digest('hex');
  return `write_${hash.slice(0, 16)}`;
}

const functionName = nameFor(
  bodyOf(
    '',
    statements.map(() => []),
  ),
);

/** The statement that calls a function for writes; its name is the kind of the write. */
export type WriteCall = PreparedStatement<{ readonly answers: string | null }>;

const call = `SELECT @${functionName}($1::integer[], $2::bigint[], $3::text[], $4::boolean) AS answers`;
const calls = new Map<string, WriteCall>();

/** The statement that sends guarded writes of a kind. */
function callOf(kind: string): WriteCall {
  const made = calls.get(kind) ?? statement(kind, call);
  calls.set(kind, made);
  return made;
}

/** Makes the function for every write: see {@link ensureFunction}. */
export async function createFunction(client: ClientBase, schema: string): Promise<boolean> {
  return ensureFunction(client, schema, functionName, async () => {
    const types: (readonly string[])[] = [];
    for (const number of statements.keys()) types.push(await typesOf(client, schema, number));
    return {
      parameters: '_calls integer[], _numbers bigint[], _texts text[], _durable boolean',
      body: bodyOf(schema, types),
    };
  });
}

/**
 * Makes a function for writes if this version's is missing. Gives whether there is one: a user who may not create it, or who only reads, sends
 * guarded writes as transactions of single statements.
 */
export async function ensureFunction(
  client: ClientBase,
  schema: string,
  name: string,
  source: () => Promise<{ readonly parameters: string; readonly body: string }>,
): Promise<boolean> {
  const found = `SELECT 1 FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = '${schema}' AND p.proname = '${name}'`;
  if ((await client.query(found)).rows.length > 0) return true;
  const { parameters, body } = await source();
  try {
    // In one statement: a process that stands still must not hold the lock of migrations.
    await client.query(
      qualify(
        `DO $do$ BEGIN
          PERFORM pg_advisory_xact_lock(${lockKey(schema, 'migrate')});
          IF NOT EXISTS (${found}) THEN
            CREATE FUNCTION @${name}(${parameters}) RETURNS text LANGUAGE plpgsql
            SET enable_seqscan TO off SET plan_cache_mode TO force_generic_plan AS $$${body}$$;
          END IF;
        END $do$`,
        schema,
      ),
    );
    return true;
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

/** The types of the parameters of a statement by its number, as Postgres finds them out. */
export async function typesOf(
  client: ClientBase,
  schema: string,
  number: number,
): Promise<readonly string[]> {
  const text = qualify(textOf(statementAt(number), schema), schema);
  // At once, as the next query may find another connection behind a pooler. The answer has a result for each statement.
  const results: unknown = await client.query(`PREPARE waymark_types AS ${text};
    SELECT parameter_types::text[] AS types FROM pg_catalog.pg_prepared_statements WHERE name = 'waymark_types';
    DEALLOCATE waymark_types`);
  return (results as readonly QueryResult<{ types: string[] }>[])[1]?.rows[0]?.types ?? [];
}

/** A guarded write, collected. */
export interface SentWrite {
  /** The queries of the plan. */
  readonly queries: readonly CollectedQuery[];
  /** What is sent: the queries, and a hint for listeners. */
  readonly sent: readonly CollectedQuery[];
  /** For each query its number, where its parameters begin, and how many parameters get its row, with their places: the shape of the write. */
  readonly calls: string;
}

/** Collects the queries of a guarded write and its hint; `undefined` when one of them is not known to the function. */
export function collectCall(
  plan: Plan<unknown>,
  hint: readonly [string, string] | undefined,
): SentWrite | undefined {
  const queries = collectWrite(plan, (each) => numberOf.has(each));
  if (queries === undefined) return undefined;
  checkOrder(queries);
  const sent = hint === undefined ? queries : [...queries, { statement: tell, values: hint }];
  const bases: number[] = [];
  const fills: number[][] = sent.map(() => []);
  let count = 0;
  for (const { values } of sent) {
    bases.push(count);
    for (const value of values) {
      count++;
      if (isRowOf(value)) fills[value.rowOf]?.push(count);
    }
  }
  const calls = sent.flatMap(({ statement: each }, place) => {
    const filled = fills[place] ?? [];
    return [numberOf.get(each) ?? 0, bases[place] ?? 0, filled.length, ...filled];
  });
  return { queries, sent, calls: `{${calls.join()}}` };
}

/** A call of a function for writes, with its parameters but the last, which says whether to wait for the disk. */
export interface FunctionCall {
  readonly call: WriteCall;
  readonly values: readonly (SqlValue | readonly (string | null)[])[];
}

/** The call of the function for every write: numbers in one list, texts and bytes at their places in another. */
export function generalCall(kind: string, { sent, calls: shape }: SentWrite): FunctionCall {
  const values = sent.flatMap((query) => query.values);
  const numbers = values.map((value) => (typeof value === 'number' ? value : 'NULL'));
  return { call: callOf(kind), values: [shape, `{${numbers.join()}}`, values.map(textOfValue)] };
}

/** A guard that is refused takes back what is known to be written: statements that give rows. */
function checkOrder(queries: readonly CollectedQuery[]): void {
  const lastGuard = queries.findLastIndex(({ statement: each }) => each.guards === true);
  const early = queries
    .slice(0, lastGuard + 1)
    .find(({ statement: each }) => each.onlyLocks !== true && !isKnown(each));
  if (early === undefined) return;
  throw new TypeError(`The statement "${early.statement.name}" comes before a guard of its write.`);
}

function isKnown(each: Statement): boolean {
  return each.guards === true || answering[numberOf.get(each) ?? 0] === true;
}

function textOfValue(value: SqlValue | RowOf): string | null {
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? hexOf(value) : null;
}

/** The result of a guarded write, from the answer of the function. Throws `Refused` when a guard did not hold. */
export function concludeCall<Result>(
  plan: Plan<Result>,
  { queries }: SentWrite,
  answer: string | null | undefined,
): Result {
  if (answer === null || answer === undefined) throw new Refused();
  const answers = JSON.parse(answer) as unknown[];
  let next = 0;
  const rows = queries.map(({ statement: each }) => {
    if (answering[numberOf.get(each) ?? 0] !== true) return each.guards === true ? [{}] : [];
    const row = answers[next++];
    return row === null || row === undefined ? [] : [row];
  });
  return concludeWrite(plan, queries, (place) => rows[place] ?? []);
}

/** Whether the function took back what it had written, because a guard did not hold. */
export function isRefusal(error: unknown): boolean {
  return codeOf(error) === refusedCode;
}
