import { createKeyedEmitter, type KeyedEmitter } from '../../core/async/emitter.ts';
import { Mutex } from '../../core/async/promises.ts';
import { raceSignal, throwIfAborted } from '../../core/async/signal.ts';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { defined } from '../../core/json/json.ts';
import { after, backoff } from '../../core/time.ts';
import { type CallBound, callBound } from '../../generate/answer/price.ts';
import type { PendingCall } from '../../generate/hooks.ts';
import type { Model } from '../../generate/model.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import { addUsage, type Totals, totalTokens } from '../../protocol/usage.ts';
import type {
  Spend,
  SpendAmount,
  SpendBound,
  SpendCount,
  SpendEntry,
  SpendReservation,
  SpendSupport,
} from '../../store/contract/store.ts';
import { dayLength } from '../../store/rules/spend.ts';
import type { AgentLimits, AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import type { StopControl } from './stop.ts';
import type { Turn } from './turn-state.ts';

/** An invocation, as far as it is limited. */
interface Limited {
  readonly spec: Pick<AgentSpec, 'limits'>;
  readonly host: Pick<AgentHost, 'clock' | 'newId'>;
  readonly control: StopControl;
  readonly spending: Spending;
  /** The session's usage before the turn; kept only where the agent limits it. */
  readonly position: { readonly totals: Totals | undefined };
  readonly turn: Pick<Turn, 'usage' | 'toolCalls'> | undefined;
  /** Has the invocation that this one works for as a sub-agent. */
  readonly request: { readonly parent?: Limited | undefined };
}

/** The most that a turn, a session or an owner may use. */
type Most = { readonly tokens?: number; readonly cost?: Cost };

/** Stops the turn when its time is up. Returns a function that cancels this. */
export function startTimeLimit(invocation: Limited, timeout: number | undefined): () => void {
  if (timeout === undefined) return () => {};
  const error = (): WaymarkError =>
    new WaymarkError('DEADLINE_EXCEEDED', `The turn took longer than its ${timeout} ms.`);
  return after(invocation.host.clock, timeout, () => invocation.control.fail(error()), {
    keepAlive: true,
  });
}

/** The session's usage including this turn; `undefined` if the agent has no session limits. */
export function totalsOf(invocation: Limited, turn: Turn): Totals | undefined {
  if (invocation.spec.limits.session === undefined) return undefined;
  const { tokens = 0, toolCalls = 0 } = invocation.position.totals ?? {};
  return {
    tokens: tokens + totalTokens(turn.usage),
    toolCalls: toolCalls + turn.toolCalls,
  };
}

/** Throws if the session has used up its tool calls, or a budget is used up, before the turn does anything. */
export function checkUnspent(invocation: Limited): Promise<unknown> | undefined {
  const { toolCalls = 0 } = invocation.position.totals ?? {};
  const most = invocation.spec.limits.session?.toolCalls;
  if (most !== undefined && toolCalls >= most) {
    throw exhausted('session', 'toolCalls', toolCalls, most);
  }
  return checkBudgets(invocation);
}

/**
 * Throws if a budget leaves nothing for another call of a model: that of the turn, the session or the owner, or one of an
 * agent that this one works for. For a call, it reserves a part of the budgets of the session and the owner, and gives the id of
 * the reservation. `undefined` if there is no budget to ask a store about.
 */
export function checkBudgets(
  invocation: Limited,
  call?: PendingCall,
): Promise<string | undefined> | undefined {
  const hasBudget =
    hasLastingBudget(invocation) || isLimited(invocation, ({ turn }) => isBudget(turn));
  return hasBudget ? checkEachBudget(invocation, call) : undefined;
}

async function checkEachBudget(
  invocation: Limited,
  call: PendingCall | undefined,
): Promise<string | undefined> {
  const budgets: Budget[] = [];
  const reserves = call !== undefined && invocation.spending.store?.reserve !== undefined;
  for (let at: Limited | undefined = invocation; at; at = at.request.parent) {
    const { turn, session, owner } = at.spec.limits;
    if (isBudget(turn)) checkLeft('turn', at.turn?.usage ?? {}, turn);
    if (isBudget(session)) {
      if (reserves && at.request.parent === undefined) {
        budgets.push(...budgetsOf(session, { of: 'session', spentAtLeast: tokensOnPath(at) }));
      } else checkLeft('session', await spentBySession(at), session);
    }
    if (owner !== undefined) {
      const sinceDay = owner.per && firstDay(owner.per, at.host.clock.now());
      if (reserves) budgets.push(...budgetsOf(owner, defined({ of: 'owner' as const, sinceDay })));
      else checkLeft('owner', (await at.spending.ofOwner(sinceDay)) ?? {}, owner);
    }
    if (call !== undefined) checkPrice(call.model, [turn?.cost, session?.cost, owner?.cost]);
  }
  if (call === undefined || budgets.length === 0) return undefined;
  return await reserveCall(invocation, budgets, call);
}

/** Whether each model call is recorded at once, because a budget counts more than the running turn. */
export function hasLastingBudget(invocation: Limited): boolean {
  return isLimited(invocation, ({ session, owner }) => isBudget(session) || owner !== undefined);
}

/** Whether the limits of the agent, or of one that it works for, pass the test. */
function isLimited(invocation: Limited, fits: (limits: AgentLimits) => boolean): boolean {
  for (let at: Limited | undefined = invocation; at; at = at.request.parent) {
    if (fits(at.spec.limits)) return true;
  }
  return false;
}

function isBudget(limits: Most | undefined): limits is Most {
  return limits?.tokens !== undefined || limits?.cost !== undefined;
}

/** The usage of a session: everything ever spent in it or, if that is more, the path that a fork began with. */
async function spentBySession(invocation: Limited): Promise<Usage> {
  const { turn, spending, request } = invocation;
  const onPath = tokensOnPath(invocation);
  // The counters of a sub-agent are those of the session that it works for.
  const spent = request.parent === undefined ? await spending.ofSession() : turn?.usage;
  return { ...spent, totalTokens: Math.max(onPath, totalTokens(spent ?? {})) };
}

function tokensOnPath({ position, turn }: Limited): number {
  return (position.totals?.tokens ?? 0) + totalTokens(turn?.usage ?? {});
}

function checkLeft(of: 'turn' | 'session' | 'owner', used: Usage, { tokens, cost }: Most): void {
  const usedTokens = totalTokens(used);
  if (tokens !== undefined && usedTokens >= tokens)
    throw exhausted(of, 'tokens', usedTokens, tokens);
  for (const [currency, most] of Object.entries(cost ?? {})) {
    const micros = used.cost?.[currency] ?? 0;
    if (micros >= most) throw exhausted(of, 'cost', micros, most, currency);
  }
}

// A model without a price would be free: no budget in money could ever be used up.
function checkPrice({ name, price }: Model, limits: readonly (Cost | undefined)[]): void {
  const currencies = limits.flatMap((cost) => Object.keys(cost ?? {}));
  if (currencies.length === 0) return;
  const known = price?.({});
  const missing = currencies.find((currency) => known?.[currency] === undefined);
  if (missing === undefined) return;
  throw failedPrecondition(
    `Model "${name}" has no price in ${missing}, so the agent's cost limit cannot be enforced. Add the model to \`price\` of waymark(), or remove the limit.`,
    { details: { model: name, currency: missing } },
  );
}

/** The first day of the running day or month, in UTC. */
function firstDay(per: 'day' | 'month', now: number): number {
  const day = Math.floor(now / dayLength);
  return per === 'day' ? day : day - new Date(now).getUTCDate() + 1;
}

/** Throws if the turn or its session has exceeded its limits. */
export function checkUsage(invocation: Limited, turn: Turn): void {
  const { turn: ofTurn, session: ofSession } = invocation.spec.limits;
  check('turn', 'tokens', totalTokens(turn.usage), ofTurn?.tokens);
  check('turn', 'toolCalls', turn.toolCalls, ofTurn?.toolCalls);
  const totals = totalsOf(invocation, turn);
  check('session', 'tokens', totals?.tokens ?? 0, ofSession?.tokens);
  check('session', 'toolCalls', totals?.toolCalls ?? 0, ofSession?.toolCalls);
}

function check(of: string, what: string, used: number, most: number | undefined): void {
  if (most !== undefined && used > most) throw exhausted(of, what, used, most);
}

type Payer = () => Omit<Spend, 'entries' | 'settles'>;

/** The calls of this process that wait for budgets of one store. */
interface Waiting {
  readonly queues: Map<string, { readonly mutex: Mutex; length: number }>;
  /** Called with the owner when reservations were settled. */
  readonly settled: KeyedEmitter;
}

const waiting = new WeakMap<object, Waiting>();

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
  queue(of: 'owner' | 'session') {
    const { owner = '', agent, sessionId } = this.#payer();
    const key = JSON.stringify(of === 'owner' ? [owner] : [owner, agent, sessionId]);
    const { queues, settled } = getOrMake(waiting, this.store ?? this, () => ({
      queues: new Map(),
      settled: createKeyedEmitter(),
    }));
    const queue = getOrMake(queues, key, () => ({ mutex: new Mutex(), length: 0 }));
    return {
      /** Runs the work when all that came before it is over. */
      async run(work: () => Promise<void>): Promise<void> {
        queue.length++;
        await queue.mutex.run(work).finally(() => {
          queue.length--;
          if (queue.length === 0) queues.delete(key);
        });
      },
      /** Calls back when a reservation of the same owner is settled; returns a function that unsubscribes. */
      onSettled: (listener: () => void) => settled.subscribe(owner, listener),
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
    return this.#withUnrecorded(await this.store?.total(defined({ owner, sinceDay })));
  }

  #withUnrecorded(recorded: Usage | undefined): Usage | undefined {
    if (recorded === undefined) return undefined;
    return [...this.#entries.values()].reduce((sum, { usage }) => addUsage(sum, usage), recorded);
  }
}

/** A budget of a session or owner, in tokens or one currency. */
interface Budget extends Omit<SpendBound, 'most'> {
  readonly limit: number;
}

/** The budgets that limits name: one for the tokens, and one for each currency. */
function budgetsOf(
  { tokens, cost = {} }: Most,
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
async function reserveCall(
  { spending, spec, host: { clock, newId } }: Limited,
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
  const [what, unit, scale] =
    currency === undefined ? ['tokens', 'tokens', 1] : ['cost', currency, 1e6];
  if (spent >= limit) return exhausted(of, what, spent, limit, currency);
  const others = reserved > 0 ? `, and other calls have reserved ${reserved / scale}` : '';
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has used ${spent / scale} of ${limit / scale} ${unit}${others}, and the next model call may need ${needed / scale}. Lower \`config.maxOutputTokens\`, set \`limits.reserve\`, or raise \`limits.${of}.${what}\`.`,
    {
      details: defined({
        limit: `${of}.${what}`,
        currency,
        used: spent,
        most: limit,
        reserved,
        needed,
      }),
    },
  );
}

/** The error of a limit that is reached; `currency` for one in money, which is counted in micro-units. */
function exhausted(
  of: string,
  what: string,
  used: number,
  most: number,
  currency?: string,
): WaymarkError {
  const amount =
    currency === undefined
      ? `used ${used} of ${most} ${what}`
      : `spent ${used / 1e6} of ${most / 1e6} ${currency}`;
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has ${amount}. Raise \`limits.${of}.${what}\`${remedies[of] ?? ''}.`,
    { details: defined({ limit: `${of}.${what}`, currency, used, most }) },
  );
}

const remedies: Readonly<Record<string, string>> = {
  turn: ', or ask for less',
  session: ', or start a new session',
};
