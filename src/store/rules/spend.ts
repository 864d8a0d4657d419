import { invalid } from '../../core/error.ts';
import type { Usage } from '../../protocol/turn.ts';
import { type Totals, totalTokens } from '../../protocol/usage.ts';
import type {
  RunUsage,
  Spend,
  SpendCount,
  SpendFilter,
  SpendGroup,
  SpendReservation,
  SpendSum,
} from '../contract/store.ts';

/** Milliseconds of a day. */
export const dayLength = 86_400_000;

/** The counters of a row, in the order of their columns; `micros` are micro-units of the row's currency. */
export const spendCounters = [
  'calls',
  'input',
  'output',
  'total',
  'reasoning',
  'cache_read',
  'cache_write',
  'micros',
] as const;

/** Counters of a stored row. */
export type SpendCounts = Readonly<Record<(typeof spendCounters)[number], number>>;

/** The fields that distinguish the rows of a spend, besides owner, session and day. */
interface SpendKey {
  readonly by_agent: string;
  readonly model: string;
  /** Empty: no price. */
  readonly currency: string;
}

/** One row to be added to what is stored. */
export type SpendRow = SpendKey & SpendCounts;

/** The rows that a spend adds to: one for each entry, and one more for each further currency of its cost. */
export function spendRows({ entries }: Spend): readonly SpendRow[] {
  return entries.flatMap(({ agent, model, calls, usage }) => {
    const counts = { ...countsOf(usage), calls };
    const amounts = Object.entries(usage.cost ?? {});
    if (amounts.length === 0) amounts.push(['', 0]);
    return amounts.map(([currency, micros], at) => ({
      by_agent: agent,
      model,
      currency,
      ...(at === 0 ? counts : nothing),
      micros,
    }));
  });
}

const nothing = countsOf({});

function countsOf(usage: Usage): SpendCounts {
  return {
    calls: 0,
    input: usage.inputTokens ?? 0,
    output: usage.outputTokens ?? 0,
    total: totalTokens(usage),
    reasoning: usage.reasoningTokens ?? 0,
    cache_read: usage.cachedInputTokens ?? 0,
    cache_write: usage.cacheWriteTokens ?? 0,
    micros: 0,
  };
}

/** A row, or a sum of rows, of one currency. */
export interface SummedRow extends SpendCounts {
  readonly key: string;
  readonly currency: string;
}

/** Sums by key, of rows that have one currency each. */
export function toSums(rows: Iterable<SummedRow>): readonly SpendSum[] {
  const sums = new Map<string, { counts: SpendCounts; cost: Record<string, number> }>();
  for (const row of rows) {
    const { counts, cost } = sums.get(row.key) ?? { counts: nothing, cost: {} };
    if (row.currency !== '') cost[row.currency] = (cost[row.currency] ?? 0) + row.micros;
    sums.set(row.key, { counts: addCounts(counts, row), cost });
  }
  const sorted = [...sums].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(([key, { counts, cost }]) => ({
    key,
    calls: counts.calls,
    usage: toUsage(counts, cost),
  }));
}

export function addCounts(a: SpendCounts, b: SpendCounts): SpendCounts {
  const sum: Record<string, number> = {};
  for (const name of spendCounters) sum[name] = a[name] + b[name];
  return sum as unknown as SpendCounts;
}

/** The usage of everything, of rows that have one currency each. */
export function toTotal(rows: Iterable<Omit<SummedRow, 'key'>>): Usage {
  const keyed = Array.from(rows, (row) => ({ ...row, key: '' }));
  return toSums(keyed)[0]?.usage ?? {};
}

function toUsage(counts: SpendCounts, cost: Record<string, number>): Usage {
  const { reasoning, cache_read: cacheRead, cache_write: cacheWrite } = counts;
  return {
    inputTokens: counts.input,
    outputTokens: counts.output,
    totalTokens: counts.total,
    ...(reasoning > 0 && { reasoningTokens: reasoning }),
    ...(cacheRead > 0 && { cachedInputTokens: cacheRead }),
    ...(cacheWrite > 0 && { cacheWriteTokens: cacheWrite }),
    ...(Object.keys(cost).length > 0 && { cost }),
  };
}

/** A row as it is stored, with whose it is and when. */
export interface StoredSpend extends SpendRow {
  readonly owner: string;
  readonly agent: string;
  readonly session: string;
  readonly day: number;
}

export function fitsSpend(row: StoredSpend, filter: SpendFilter): boolean {
  const { owner, agent, sessionId, sinceDay } = filter;
  return (
    (owner === undefined || row.owner === (owner ?? '')) &&
    (agent === undefined || row.agent === agent) &&
    (sessionId === undefined || row.session === sessionId) &&
    (sinceDay === undefined || row.day >= sinceDay)
  );
}

/** A reservation as it is stored. */
export interface StoredReservation extends Pick<SpendReservation, 'id' | 'holder' | 'amounts'> {
  readonly owner: string;
  readonly agent: string;
  readonly session: string;
  readonly day: number;
  readonly expiresAt: number;
}

/** The counts that refuse a reservation, from the rows and open reservations of its owner; `undefined` if it can be made. */
export function refusalOf(
  { agent, sessionId, holder, bounds }: SpendReservation,
  rows: readonly StoredSpend[],
  reservations: readonly StoredReservation[],
  now: number,
): readonly SpendCount[] | undefined {
  const isOfSession = (each: StoredSpend | StoredReservation): boolean =>
    each.agent === agent && each.session === sessionId;
  const counts = bounds.map(({ of, sinceDay = 0, currency, spentAtLeast = 0 }) => {
    const fits = (each: StoredSpend | StoredReservation): boolean =>
      each.day >= sinceDay && (of === 'owner' || isOfSession(each));
    let spent = 0;
    for (const row of rows.filter(fits)) {
      if (currency === undefined) spent += row.total;
      else if (row.currency === currency) spent += row.micros;
    }
    let [lost, reserved] = [0, 0];
    for (const each of reservations.filter(fits)) {
      const isLost = each.expiresAt <= now || (isOfSession(each) && each.holder !== holder);
      for (const { amount, isBound } of each.amounts.filter((one) => one.currency === currency)) {
        if (!isLost) reserved += amount;
        else if (isBound) lost += amount;
      }
    }
    return { spent: Math.max(spent, spentAtLeast) + lost, reserved };
  });
  const isRefused = counts.some(
    ({ spent, reserved }, at) => spent + reserved > (bounds[at]?.most ?? 0),
  );
  return isRefused ? counts : undefined;
}

/** The key that a row is summed up under. */
export function spendKey(row: StoredSpend, by: SpendGroup): string {
  switch (by) {
    case 'owner':
      return row.owner;
    case 'agent':
      return row.by_agent;
    case 'model':
      return row.model;
    case 'day':
      return dayText(row.day);
  }
}

/** A day as YYYY-MM-DD. */
export function dayText(day: number): string {
  return new Date(day * dayLength).toISOString().slice(0, 10);
}

/** Parses a day such as 2026-01-31 into the number of days since 1970-01-01 UTC. */
export function parseDay(text: string): number {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (!Number.isNaN(time)) return Math.floor(time / dayLength);
  throw invalid(`"${text.slice(0, 40)}" is not a day. Write it as 2026-11-16.`);
}

/** The usage of a run whose last checkpoint is a snapshot within its only turn. */
export function spentInTurn(usage: Usage | undefined, toolCalls = 0): RunUsage {
  return { turn: { usage: usage ?? {}, toolCalls }, before: {} };
}

/** The totals to continue from: those of the parent, or those of failed turns that started from it, whichever are higher. */
export function highestTotals(
  ofParent: Totals | undefined,
  ofFailed: Totals | undefined,
): Totals | undefined {
  if (ofParent === undefined || ofFailed === undefined) return ofParent ?? ofFailed;
  return {
    tokens: Math.max(ofParent.tokens, ofFailed.tokens),
    toolCalls: Math.max(ofParent.toolCalls, ofFailed.toolCalls),
  };
}
