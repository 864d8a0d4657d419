import type { SpendCount, SpendReservation } from '../contract/store.ts';
import { dayLength } from '../rules/spend.ts';
import type { Dialect } from './database/dialect.ts';
import { all, first, type Plan, type SqlValue, statement } from './database/query.ts';

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

/** What counts as spent for a row of `c`. */
const spent = 'CASE WHEN c.spent < c.at_least THEN c.at_least ELSE c.spent END + c.lost';

/** Makes a reservation unless a bound does not hold; gives its id once for each currency. */
export const insertReservation = (d: Dialect): string => `${counted(d)}
  INSERT INTO @reservations(owner, agent, session, holder, id, currency, amount, is_bound, day, expires_at)
  SELECT $1, $2, $3, $5, $6, l.value ->> 0, CAST(l.value ->> 1 AS bigint), CAST(l.value ->> 2 AS smallint),
    ${d.now} / ${dayLength}, ${d.now} + $8
  FROM ${d.items('$7')}
  WHERE NOT EXISTS (SELECT 1 FROM c WHERE ${spent} + c.reserved > c.most)
  RETURNING id`;

const reserve = statement<{ readonly id: string }>('spend_reserve', (d) =>
  // On Postgres, only a function sees what was written while it waited for its lock.
  d.name === 'postgres'
    ? 'SELECT @reserve_spend($1, $2, $3, $4, $5, $6, $7, $8, $9) AS id'
    : insertReservation(d),
);

const count = statement<SpendCount>(
  'spend_count',
  (d) => `${counted(d)}
    SELECT CAST(${spent} AS bigint) AS spent, CAST(c.reserved AS bigint) AS reserved FROM c ORDER BY c.place`,
);

/** Makes a reservation in one statement. If it is refused, another one reads why. */
export function* reserveSpend(
  reservation: SpendReservation,
  isPostgres: boolean,
): Plan<readonly SpendCount[] | undefined> {
  const { owner = '', agent, sessionId, id, holder, amounts, ttl, bounds } = reservation;
  const given = bounds.map(
    ({ of, sinceDay = 0, currency = '', most, spentAtLeast = 0 }, place) =>
      [place, of === 'session' ? 1 : 0, sinceDay, currency, most, spentAtLeast] as const,
  );
  const counting = [owner, agent, sessionId, JSON.stringify(given), holder] as const;
  const rows = amounts.map(({ currency = '', amount, isBound }) => [currency, amount, +isBound]);
  const values: SqlValue[] = [...counting, id, JSON.stringify(rows), ttl];
  if (isPostgres) {
    // The session before its owner, everywhere.
    const session = bounds.some(({ of }) => of === 'session') ? [[owner, agent, sessionId]] : [];
    const locks = [...session, ...(bounds.some(({ of }) => of === 'owner') ? [[owner]] : [])];
    values.push(JSON.stringify(locks.map((lock) => JSON.stringify(lock))));
  }
  const made = yield* first(reserve, ...values);
  return made === undefined ? yield* all(count, ...counting) : undefined;
}
