import { createKeyedEmitter, type KeyedEmitter } from '../../core/async/emitter.ts';
import { Mutex } from '../../core/async/promises.ts';
import { raceSignal, throwIfAborted } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { after, backoff } from '../../core/time.ts';
import { type CallBound, callBound } from '../../generate/answer/price.ts';
import type { PendingCall } from '../../generate/hooks.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type {
  Spend,
  SpendAmount,
  SpendBound,
  SpendCount,
  SpendEntry,
  SpendReservation,
  SpendSupport,
} from '../../store/contract/store.ts';
import type { AgentHost } from '../persistence/host.ts';
import type { AgentLimits, AgentSpec } from '../spec/spec.ts';

type Payer = () => Omit<Spend, 'entries' | 'settles'>;

/** The calls of this process that wait for budgets of one store. */
interface Waiting {
  readonly queues: Map<string, { readonly mutex: Mutex; length: number }>;
  /** Called with the owner when reservations were settled. */
  readonly settled: KeyedEmitter;
}

const waiting = new WeakMap<object, Waiting>();

interface BudgetQueue {
  /** Runs the work when all that came before it is over. */
  run(work: () => Promise<void>): Promise<void>;
  /** Calls back when a reservation of the same owner is settled; returns a function that unsubscribes. */
  onSettled(listener: () => void): () => void;
}

/**
 * Spend of an invocation and the sub-agents inside it that the store has not recorded yet. It goes along with the next
 * commit or checkpoint of any of them.
 */
export class Spending {
  /** Where it is recorded; `undefined`: nowhere. */
  readonly store: SpendSupport | undefined;
  readonly #payer: Payer;
  readonly #entries = new Map<string, SpendEntry>();
  #holder: string | undefined;
  /** Reservations whose calls have ended. */
  readonly #settles = new Set<string>();

  constructor(store: SpendSupport | undefined, payer: Payer) {
    this.store = store;
    this.#payer = payer;
  }

  add(agent: string, model: string, usage: Usage, calls = 1): void {
    // A model that does not count leaves nothing to record.
    if (this.store === undefined || Object.keys(usage).length === 0) return;
    const key = `${agent}\0${model}`;
    const known = this.#entries.get(key);
    this.#entries.set(key, {
      agent,
      model,
      calls: (known?.calls ?? 0) + calls,
      usage: known === undefined ? usage : addUsage(known.usage, usage),
    });
  }

  settle(reservation: string): void {
    this.#settles.add(reservation);
  }

  /** Makes a reservation, as {@link SpendSupport.reserve}. The store must have it. */
  async reserve(
    reservation: Omit<SpendReservation, 'owner' | 'agent' | 'sessionId' | 'holder'>,
  ): Promise<readonly SpendCount[] | undefined> {
    await this.flush();
    try {
      this.#holder ??= reservation.id;
      const holder = this.#holder;
      return await this.store?.reserve?.({ ...this.#payer(), ...reservation, holder });
    } catch (error) {
      // It may have been made all the same.
      this.settle(reservation.id);
      throw error;
    }
  }

  /** The queue for the budgets of the owner, or of the session alone. */
  queue(of: 'owner' | 'session'): BudgetQueue {
    const { owner = '', agent, sessionId } = this.#payer();
    const key = JSON.stringify(of === 'owner' ? [owner] : [owner, agent, sessionId]);
    const store = this.store ?? this;
    const { queues, settled } = waiting.get(store) ?? {
      queues: new Map(),
      settled: createKeyedEmitter(),
    };
    waiting.set(store, { queues, settled });
    const queue = queues.get(key) ?? { mutex: new Mutex(), length: 0 };
    queues.set(key, queue);
    return {
      async run(work) {
        queue.length++;
        await queue.mutex.run(work).finally(() => {
          queue.length--;
          if (queue.length === 0) queues.delete(key);
        });
      },
      onSettled: (listener) => settled.subscribe(owner, listener),
    };
  }

  /** Writes with what is not recorded yet, if the write goes to the same store. After an error it is still not recorded. */
  alongWith<Value>(
    store: SpendSupport | undefined,
    write: (spend: { readonly spend?: Spend }) => Promise<Value>,
  ): Promise<Value> {
    return this.isRecorded || store !== this.store ? write({}) : this.#record(write);
  }

  async #record<Value>(
    write: (spend: { readonly spend: Spend }) => Promise<Value>,
  ): Promise<Value> {
    const entries = [...this.#entries.values()];
    const settles = [...this.#settles];
    this.#entries.clear();
    this.#settles.clear();
    try {
      const payer = this.#payer();
      const spend = { ...payer, entries, ...(settles.length > 0 && { settles }) };
      const result = await write({ spend });
      if (settles.length > 0) waiting.get(this.store ?? this)?.settled.emit(payer.owner ?? '');
      return result;
    } catch (error) {
      for (const { agent, model, usage, calls } of entries) this.add(agent, model, usage, calls);
      for (const id of settles) this.settle(id);
      throw error;
    }
  }

  /** Whether the store has everything that was spent. */
  get isRecorded(): boolean {
    return this.#entries.size === 0 && this.#settles.size === 0;
  }

  /** Records by itself what no commit has taken along. */
  async flush(): Promise<void> {
    if (!this.isRecorded) await this.#record(async ({ spend }) => await this.store?.add(spend));
  }

  /** The session's spend, sub-agents included; `undefined` if no store records it. */
  async ofSession(): Promise<Usage | undefined> {
    const { owner = null, ...session } = this.#payer();
    return this.#withUnrecorded(await this.store?.total({ owner, ...session }));
  }

  /** The owner's spend since a day, over all agents; `undefined` if no store records it. */
  async ofOwner(sinceDay: number | undefined): Promise<Usage | undefined> {
    const { owner = null } = this.#payer();
    return this.#withUnrecorded(
      await this.store?.total({ owner, ...(sinceDay !== undefined && { sinceDay }) }),
    );
  }

  #withUnrecorded(recorded: Usage | undefined): Usage | undefined {
    if (recorded === undefined) return undefined;
    return [...this.#entries.values()].reduce((sum, { usage }) => addUsage(sum, usage), recorded);
  }
}

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
const maxWaitMs = 600_000;

/**
 * Reserves what a model call may use, and returns the id of the reservation. A call that may fit once others have ended waits for
 * them, in a queue for each budget, so that one call of this process at a time asks the store.
 */
export async function reserveCall(
  {
    spending,
    spec,
    host: { clock, newId },
  }: {
    readonly spending: Spending;
    readonly spec: Pick<AgentSpec, 'limits'>;
    readonly host: Pick<AgentHost, 'clock' | 'newId'>;
  },
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
  const until = clock.now() + maxWaitMs;
  const attempt = async (): Promise<boolean> => {
    const counts = await spending.reserve({ id, amounts, ttl: maxWaitMs, bounds });
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

/** The amounts that a call reserves: those of the agent's options, else those that follow from its request. */
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
