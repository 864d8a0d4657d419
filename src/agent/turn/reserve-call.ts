import { raceSignal, throwIfAborted } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { backoff } from '../../core/time/backoff.ts';
import { after } from '../../core/time/timers.ts';
import { type CallBound, callBound } from '../../generate/answer/price.ts';
import type { PendingCall } from '../../generate/hooks.ts';
import type { Cost } from '../../protocol/turn.ts';
import type { SpendAmount, SpendBound, SpendCount } from '../../store/contract/store.ts';
import type { AgentLimits } from '../spec/spec.ts';
import type { InvocationState } from './invocation-state.ts';

/** A budget of a session or owner, in tokens or one currency. */
export interface Budget extends Omit<SpendBound, 'most'> {
  readonly limit: number;
}

/** The budgets that limits name: one for the tokens, and one for each currency. */
export function budgetsOf(
  { tokens, cost = {} }: { readonly tokens?: number; readonly cost?: Cost },
  { spentAtLeast = 0, ...scope }: Omit<Budget, 'limit' | 'currency'>,
): readonly Budget[] {
  return [
    ...(tokens === undefined ? [] : [{ ...scope, limit: tokens, spentAtLeast }]),
    ...Object.entries(cost).map(([currency, limit]) => ({ ...scope, currency, limit })),
  ];
}

/** The longest wait for other calls, and the time after which a call counts as lost, in milliseconds. */
const patience = 600_000;

/**
 * Reserves what a model call may use, and returns the id of the reservation. A call that may fit once others have ended waits for
 * them, in a queue for each budget, so that one call of this process at a time asks the store.
 */
export async function reserveCall(
  { spending, spec, host: { clock, newId } }: InvocationState,
  budgets: readonly Budget[],
  { model, request, signal }: PendingCall,
): Promise<string> {
  const amounts = amountsOf(callBound(model, request), spec.limits.reserve);
  const bounds = budgets.map(({ limit, ...budget }) => {
    const known = amounts.find(({ currency, isBound }) => isBound && currency === budget.currency);
    // Without a known bound, a call begins as long as anything is left.
    const needed = known?.amount ?? 1;
    return { ...budget, limit, needed, most: Math.floor(Math.min(limit, largest)) - needed };
  });
  const id = newId();
  const until = clock.now() + patience;
  const attempt = async (): Promise<boolean> => {
    const counts = await spending.reserve({ id, amounts, ttl: patience, bounds });
    if (counts === undefined) return true;
    const isLate = clock.now() >= until;
    for (const [at, bound] of bounds.entries()) {
      const { spent = 0, reserved = 0 } = counts[at] ?? {};
      // Waiting is of no use, or was of no use.
      if (spent + (isLate ? reserved : 0) > bound.most) throw notEnough(bound, { spent, reserved });
    }
    return false;
  };
  if (await attempt()) return id;
  const queue = spending.queue(budgets.some(({ of }) => of === 'owner') ? 'owner' : 'session');
  const waited = queue.run(async () => {
    for (let attempts = 1; ; attempts++) {
      throwIfAborted(signal);
      const { promise, resolve } = Promise.withResolvers<void>();
      const leave = queue.onSettled(resolve);
      const delay = backoff(attempts, { baseMs: 20, maxMs: 1_000 });
      const cancel = after(clock, delay, resolve, { keepAlive: true });
      try {
        if (await attempt()) break;
        await raceSignal(promise, signal);
      } finally {
        cancel();
        leave();
      }
    }
    if (!signal.aborted) return;
    // The call has been given up while the reservation was made.
    spending.settle(id);
    await spending.flush();
  });
  await raceSignal(waited, signal);
  return id;
}

// The stores count with integers.
const largest = Number.MAX_SAFE_INTEGER;

/** What a call reserves: what the agent's options say, else what follows from its request. */
function amountsOf(
  { tokens, cost, isKnown }: CallBound,
  reserve: AgentLimits['reserve'] = {},
): readonly SpendAmount[] {
  const given = reserve.tokens === undefined ? undefined : Math.ceil(reserve.tokens);
  return [
    { amount: given ?? tokens, isBound: isKnown || given !== undefined },
    ...Object.entries({ ...cost, ...reserve.cost }).map(([currency, amount]) => ({
      currency,
      amount,
      isBound: isKnown || reserve.cost?.[currency] !== undefined,
    })),
  ];
}

function notEnough(
  { of, currency, limit, needed }: Budget & { readonly needed: number },
  { spent, reserved }: SpendCount,
): WaymarkError {
  if (spent >= limit) {
    return currency === undefined
      ? exhausted(of, 'tokens', spent, limit)
      : overspent(of, currency, spent, limit);
  }
  const [what, unit, scale] =
    currency === undefined ? ['tokens', 'tokens', 1] : ['cost', currency, 1e6];
  const others = reserved > 0 ? `, and other calls have reserved ${reserved / scale}` : '';
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has used ${spent / scale} of ${limit / scale} ${unit}${others}, and the next model call may need ${needed / scale}. Lower \`config.maxOutputTokens\`, set \`limits.reserve\`, or raise \`limits.${of}.${what}\`.`,
    {
      details: {
        limit: `${of}.${what}`,
        ...(currency !== undefined && { currency }),
        ...{ used: spent, most: limit, reserved, needed },
      },
    },
  );
}

export function exhausted(of: string, what: string, used: number, most: number): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has used ${used} of ${most} ${what}. Raise \`limits.${of}.${what}\`${remedies[of] ?? ''}.`,
    { details: { limit: `${of}.${what}`, used, most } },
  );
}

export function overspent(of: string, currency: string, used: number, most: number): WaymarkError {
  const spent = `${used / 1e6} of ${most / 1e6} ${currency}`;
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has spent ${spent}. Raise \`limits.${of}.cost\`${remedies[of] ?? ''}.`,
    { details: { limit: `${of}.cost`, currency, used, most } },
  );
}

const remedies: Readonly<Record<string, string>> = {
  turn: ', or ask for less',
  session: ', or start a new session',
};
