import type { Spend, SpendFilter, SpendGroup, SpendSupport } from '../contract/store.ts';
import {
  dayLength,
  dayText,
  type SpendCounts,
  spendCounters,
  spendRows,
  toSums,
  toTotal,
} from '../rules/spend.ts';
import type { Database } from './database/database.ts';
import type { Dialect } from './database/dialect.ts';
import { all, type Plan, run, type SqlValue, type Statement, statement } from './database/query.ts';
import { reserveSpend } from './reserve-spend.ts';

/** What tells the rows apart, besides the day. */
const spendKeys = ['owner', 'agent', 'session', 'by_agent', 'model', 'currency'] as const;

/** The end of an insertion that adds to the rows that are there. */
export const addToSpend: string = `ON CONFLICT(${spendKeys.join(', ')}, day) DO UPDATE SET ${spendCounters
  .map((name) => `${name} = s.${name} + excluded.${name}`)
  .join(', ')}`;

const columns = [...spendKeys, ...spendCounters];

const insertSpend = statement(
  'spend_add',
  (d) => `
    INSERT INTO @spend AS s(${columns.join(', ')}, day)
    VALUES(${columns.map((_, at) => `$${at + 1}`).join(', ')}, ${d.now} / ${dayLength}) ${addToSpend}`,
);

/** The values of the rows that a spend adds to, in the order of the columns. */
function spendValues(spend: Spend): readonly (readonly SqlValue[])[] {
  const { owner = '', agent, sessionId: session } = spend;
  return spendRows(spend).map((row) => {
    const values: Readonly<Record<string, SqlValue>> = { ...row, owner, agent, session };
    return columns.map((name) => values[name] ?? null);
  });
}

const whichReservations = (d: Dialect): string =>
  `@reservations WHERE owner = $1 AND agent = $2 AND session = $3 AND id ${d.texts('$4')}`;

const settle = statement('spend_settle', (d) => `DELETE FROM ${whichReservations(d)}`);

/** Records the spend that a write carries. */
export function* addSpend(spend: Spend | undefined): Plan<void> {
  if (spend === undefined) return;
  const { owner = '', agent, sessionId, settles = [] } = spend;
  for (const values of spendValues(spend)) yield* run(insertSpend, ...values);
  if (settles.length > 0) yield* run(settle, owner, agent, sessionId, JSON.stringify(settles));
}

/** Postgres only, where each statement is a round trip: records a spend and removes its reservations. */
const addOnPostgres = statement(
  'spend_add_all',
  (d) => `
    WITH settled AS (DELETE FROM ${whichReservations(d)})
    INSERT INTO @spend AS s(owner, agent, session, by_agent, model, currency, ${spendCounters.join(', ')}, day)
    SELECT $1, $2, $3, x.by_agent, x.model, x.currency, ${spendCounters.map((name) => `x.${name}`).join(', ')}, ${d.now} / ${dayLength}
    FROM json_to_recordset($5::json) AS x(by_agent text, model text, currency text, ${spendCounters.map((name) => `${name} bigint`).join(', ')})
    ${addToSpend}`,
);

function* addAtOnce(spend: Spend): Plan<void> {
  const { owner = '', agent, sessionId, settles = [] } = spend;
  const rows = JSON.stringify(spendRows(spend));
  yield* run(addOnPostgres, owner, agent, sessionId, JSON.stringify(settles), rows);
}

const deleteSpend = statement('spend_erase', 'DELETE FROM @spend WHERE owner = $1');
const deleteReservations = statement('spend_free', 'DELETE FROM @reservations WHERE owner = $1');

/** Forgets what an owner has spent. */
export function* eraseSpend(owner: string): Plan<void> {
  yield* run(deleteSpend, owner);
  yield* run(deleteReservations, owner);
}

type SumRow = SpendCounts & { readonly currency: string; readonly key: string | number };

const groupColumns: Readonly<Record<SpendGroup | 'total', string>> = {
  owner: 'owner',
  agent: 'by_agent',
  model: 'model',
  day: 'day',
  total: "''",
};

/** The sums of what passes a filter: one row for each key and currency. */
function* readSums(by: SpendGroup | 'total', filter: SpendFilter): Plan<readonly SumRow[]> {
  const { owner, agent, sessionId, sinceDay } = filter;
  const values: SqlValue[] = [];
  const conditions: string[] = [];
  const require = (column: string, operator: string, value: SqlValue): void => {
    values.push(value);
    conditions.push(`${column} ${operator} $${values.length}`);
  };
  if (owner !== undefined) require('owner', '=', owner ?? '');
  if (agent !== undefined) require('agent', '=', agent);
  if (sessionId !== undefined) require('session', '=', sessionId);
  if (sinceDay !== undefined) require('day', '>=', sinceDay);
  return yield* all(sumStatement(by, conditions), ...values);
}

const sumStatements = new Map<string, Statement<SumRow>>();

function sumStatement(by: SpendGroup | 'total', conditions: readonly string[]): Statement<SumRow> {
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const known = sumStatements.get(`${by} ${where}`);
  if (known !== undefined) return known;
  const sums = spendCounters.map((name) => `CAST(SUM(${name}) AS bigint) AS ${name}`).join(', ');
  const key = groupColumns[by];
  const made = statement<SumRow>(
    `spend_sums_${sumStatements.size}`,
    `SELECT ${key} AS key, currency, ${sums} FROM @spend ${where}
     GROUP BY ${by === 'total' ? '' : `${key}, `}currency`,
  );
  sumStatements.set(`${by} ${where}`, made);
  return made;
}

/** What was spent, by the rows of a table. */
export function spendSupport({ db }: { readonly db: Database }): SpendSupport {
  const isPostgres = db.dialect.name === 'postgres';
  return {
    add: (spend) =>
      isPostgres
        ? db.write(() => addAtOnce(spend), { single: true })
        : db.write(() => addSpend(spend)),
    reserve: (reservation) =>
      db.write(() => reserveSpend(reservation, isPostgres), { single: true }),
    async total(filter) {
      return toTotal(await db.read(() => readSums('total', filter)));
    },
    async sums(by, filter) {
      const rows = await db.read(() => readSums(by, filter));
      const named = (key: string | number): string =>
        by === 'day' ? dayText(Number(key)) : String(key);
      return toSums(rows.map((row) => ({ ...row, key: named(row.key) })));
    },
  };
}
