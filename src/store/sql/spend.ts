import type {
  Spend,
  SpendCount,
  SpendFilter,
  SpendGroup,
  SpendReservation,
  SpendSupport,
} from '../contract/store.ts';
import {
  dayLength,
  dayText,
  type SpendCounts,
  spendCounters,
  spendRows,
  toSums,
  toTotal,
} from '../rules/spend.ts';
import { changes, type Dialect } from './database/dialect.ts';
import type { Driver } from './database/driver.ts';
import {
  all,
  expect,
  guard,
  locking,
  type Plan,
  Refused,
  run,
  type SqlValue,
  type Statement,
  statement,
} from './database/query.ts';

/** Columns that tell the rows apart, besides the day. */
const spendKeys = ['owner', 'agent', 'session', 'by_agent', 'model', 'currency'] as const;

const columns = [...spendKeys, ...spendCounters];

/** The current day. A time may be bound as a fraction of days. */
const today = (d: Dialect): string => `CAST(${d.now} / ${dayLength} AS bigint)`;

const insertSpend = statement('spend_add', (d) => {
  const added = spendCounters.map((name) => [name, `s.${name} + excluded.${name}`]);
  return `
    INSERT INTO @spend AS s(${columns.join(', ')}, day)
    VALUES(${columns.map((_, at) => `$${at + 1}`).join(', ')}, ${today(d)})
    ON CONFLICT(${spendKeys.join(', ')}, day) DO UPDATE SET ${changes(d, 'spend', Object.fromEntries(added), 's')}`;
});

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

export function* addSpend(spend: Spend | undefined): Plan<void> {
  if (spend === undefined) return;
  const { owner = '', agent, sessionId, settles = [] } = spend;
  for (const values of spendValues(spend)) yield* run(insertSpend, ...values);
  if (settles.length > 0) yield* run(settle, owner, agent, sessionId, JSON.stringify(settles));
}

const deleteSpend = statement('spend_erase', 'DELETE FROM @spend WHERE owner = $1');
const deleteReservations = statement('spend_free', 'DELETE FROM @reservations WHERE owner = $1');

export function* eraseSpend(owner: string): Plan<void> {
  yield* run(deleteSpend, owner);
  yield* run(deleteReservations, owner);
}

type SumRow = SpendCounts & { readonly currency: string; readonly key: string | number };

const groupColumns: Readonly<Record<SpendGroup | 'total', string>> = {
  owner: 'owner',
  agent: 'by_agent',
  model: 'model',
  day: 'CAST(day AS bigint)',
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

export function spendSupport({ db }: { readonly db: Driver }): SpendSupport {
  return {
    add: (spend) => db.write(() => addSpend(spend), { guarded: 'spend_add_all' }),
    reserve: (reservation) => reserveSpend(db, reservation),
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

/** The sum of a column over the rows of a bound `b`: those of its session, or of its owner. Each of the two is found by the primary key. */
const sumOf = (table: string, column: string, condition: string): string => {
  const sum = (session: string): string => `(SELECT SUM(${column}) FROM @${table} x
      WHERE x.owner = $1 ${session} AND x.day >= b.since AND ${condition})`;
  return `COALESCE(CASE b.of_session WHEN 1 THEN ${sum('AND x.agent = $2 AND x.session = $3')} ELSE ${sum('')} END, 0)`;
};

/** Whether the call of a reservation `x` is under way, for the holder `$5`. */
const isHeld = (d: Dialect): string =>
  `(x.expires_at > ${d.now} AND (x.agent <> $2 OR x.session <> $3 OR x.holder = $5))`;

/** The bounds in `$4`, with what counts for each. */
const counted = (d: Dialect): string => `
  WITH b AS MATERIALIZED (
    SELECT CAST(l.value ->> 0 AS bigint) AS place, CAST(l.value ->> 1 AS bigint) AS of_session,
      CAST(l.value ->> 2 AS bigint) AS since, l.value ->> 3 AS currency,
      CAST(l.value ->> 4 AS bigint) AS most, CAST(l.value ->> 5 AS bigint) AS at_least
    FROM ${d.items('$4')}),
  c AS MATERIALIZED (
    SELECT b.place, b.most, b.at_least,
      ${sumOf('spend', "CASE b.currency WHEN '' THEN x.total ELSE x.micros END", "(b.currency = '' OR x.currency = b.currency)")} AS spent,
      ${sumOf('reservations', 'x.amount', `x.currency = b.currency AND x.is_bound = 1 AND NOT ${isHeld(d)}`)} AS lost,
      ${sumOf('reservations', 'x.amount', `x.currency = b.currency AND ${isHeld(d)}`)} AS reserved
    FROM b)`;

/** The amount that counts as spent for a row of `c`. */
const spent = 'CASE WHEN c.spent < c.at_least THEN c.at_least ELSE c.spent END + c.lost';

/** Makes a reservation unless a bound does not hold; gives its id once for each currency. */
const reserve = guard<{ readonly id: string }>(
  'spend_reservation',
  (d) => `${counted(d)}
  INSERT INTO @reservations(owner, agent, session, holder, id, currency, amount, is_bound, day, expires_at)
  SELECT $1, $2, $3, $5, $6, l.value ->> 0, CAST(l.value ->> 1 AS bigint), CAST(l.value ->> 2 AS smallint),
    ${today(d)}, ${d.now} + $8
  FROM ${d.items('$7')}
  WHERE NOT EXISTS (SELECT 1 FROM c WHERE ${spent} + c.reserved > c.most)
  RETURNING id`,
);
/** A lock on a budget. The statements after it see everything that was written while it was waited for. */
const lockBudget = locking('spend_lock', (d) => d.lockName('$1'));
const count = statement<SpendCount>(
  'spend_count',
  (d) => `${counted(d)}
    SELECT CAST(${spent} AS bigint) AS spent, CAST(c.reserved AS bigint) AS reserved FROM c ORDER BY c.place`,
);

/** Makes a reservation. If it is refused, the counts say why. */
async function reserveSpend(
  db: Driver,
  reservation: SpendReservation,
): Promise<readonly SpendCount[] | undefined> {
  const { owner = '', agent, sessionId, id, holder, amounts, ttl, bounds } = reservation;
  const given = bounds.map(
    ({ of, sinceDay = 0, currency = '', most, spentAtLeast = 0 }, place) =>
      [place, of === 'session' ? 1 : 0, sinceDay, currency, most, spentAtLeast] as const,
  );
  const counting = [owner, agent, sessionId, JSON.stringify(given), holder] as const;
  const rows = amounts.map(({ currency = '', amount, isBound }) => [currency, amount, +isBound]);
  // The session before its owner, everywhere.
  const places = { session: [owner, agent, sessionId], owner: [owner] };
  const locked = (['session', 'owner'] as const).filter((place) =>
    bounds.some(({ of }) => of === place),
  );
  const plan = function* (): Plan<void> {
    for (const place of locked) yield* run(lockBudget, JSON.stringify(places[place]));
    yield* expect(reserve, ...counting, id, JSON.stringify(rows), ttl);
  };
  try {
    await db.write(plan, { guarded: 'spend_reserve' });
    return undefined;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return await db.read(() => all(count, ...counting));
  }
}

/** The statements that record spend and make reservations. */
export const spendStatements = [insertSpend, settle, lockBudget, reserve];
