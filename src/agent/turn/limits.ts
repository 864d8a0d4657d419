import { WaymarkError } from '../../core/error.ts';
import { after } from '../../core/time.ts';
import type { PendingCall } from '../../generate/hooks.ts';
import type { Model } from '../../generate/model.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import { type Totals, totalTokens } from '../../protocol/usage.ts';
import { dayLength } from '../../store/rules/spend.ts';
import type { InvocationState } from './invocation-state.ts';
import { type Budget, budgetsOf, exhausted, overspent, reserveCall } from './spending.ts';
import type { Turn } from './turn-state.ts';

/** Stops the turn when its time is up. Returns a function that cancels this. */
export function startTimeLimit(
  invocation: InvocationState,
  timeout: number | undefined,
): () => void {
  if (timeout === undefined) return () => {};
  const error = (): WaymarkError =>
    new WaymarkError('DEADLINE_EXCEEDED', `The turn took longer than its ${timeout} ms.`);
  return after(invocation.host.clock, timeout, () => invocation.control.fail(error()), {
    keepAlive: true,
  });
}

/** The session's usage including this turn; `undefined` if the agent has no session limits. */
export function totalsOf(invocation: InvocationState, turn: Turn): Totals | undefined {
  if (invocation.spec.limits.session === undefined) return undefined;
  const { tokens = 0, toolCalls = 0 } = invocation.position.totals ?? {};
  return {
    tokens: tokens + totalTokens(turn.usage),
    toolCalls: toolCalls + turn.toolCalls,
  };
}

/** Throws if the session has used up its tool calls, or a budget is used up, before the turn does anything. */
export function checkUnspent(invocation: InvocationState): Promise<unknown> | undefined {
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
  invocation: InvocationState,
  call?: PendingCall,
): Promise<string | undefined> | undefined {
  const isLimited = hasLastingBudget(invocation) || hasTurnBudget(invocation);
  return isLimited ? checkEachBudget(invocation, call) : undefined;
}

async function checkEachBudget(
  invocation: InvocationState,
  call: PendingCall | undefined,
): Promise<string | undefined> {
  const budgets: Budget[] = [];
  const reserves = call !== undefined && invocation.spending.store?.reserve !== undefined;
  for (let at: InvocationState | undefined = invocation; at; at = at.request.parent) {
    const { turn, session, owner } = at.spec.limits;
    if (turn?.tokens !== undefined || turn?.cost !== undefined) {
      checkLeft('turn', at.turn?.usage ?? {}, turn);
    }
    if (session?.tokens !== undefined || session?.cost !== undefined) {
      if (reserves && at.request.parent === undefined) {
        budgets.push(...budgetsOf(session, { of: 'session', spentAtLeast: tokensOnPath(at) }));
      } else checkLeft('session', await spentBySession(at), session);
    }
    if (owner !== undefined) {
      const sinceDay = owner.per && firstDay(owner.per, at.host.clock.now());
      if (reserves)
        budgets.push(
          ...budgetsOf(owner, { of: 'owner', ...(sinceDay !== undefined && { sinceDay }) }),
        );
      else checkLeft('owner', (await at.spending.ofOwner(sinceDay)) ?? {}, owner);
    }
    if (call !== undefined) checkPrice(call.model, [turn?.cost, session?.cost, owner?.cost]);
  }
  if (call === undefined || budgets.length === 0) return undefined;
  return await reserveCall(invocation, budgets, call);
}

/** Whether each model call is recorded at once, because a budget counts more than the running turn. */
export function hasLastingBudget(invocation: InvocationState): boolean {
  for (let at: InvocationState | undefined = invocation; at; at = at.request.parent) {
    const { session, owner } = at.spec.limits;
    if (session?.tokens !== undefined || session?.cost !== undefined || owner !== undefined) {
      return true;
    }
  }
  return false;
}

/** Whether the turn, or one that it works for, has a budget. */
function hasTurnBudget(invocation: InvocationState): boolean {
  for (let at: InvocationState | undefined = invocation; at; at = at.request.parent) {
    const { turn } = at.spec.limits;
    if (turn?.tokens !== undefined || turn?.cost !== undefined) return true;
  }
  return false;
}

/** The usage of a session: everything ever spent in it or, if that is more, the path that a fork began with. */
async function spentBySession(invocation: InvocationState): Promise<Usage> {
  const { turn, spending, request } = invocation;
  const onPath = tokensOnPath(invocation);
  // The counters of a sub-agent are those of the session that it works for.
  const spent = request.parent === undefined ? await spending.ofSession() : turn?.usage;
  return { ...spent, totalTokens: Math.max(onPath, totalTokens(spent ?? {})) };
}

function tokensOnPath({ position, turn }: InvocationState): number {
  return (position.totals?.tokens ?? 0) + totalTokens(turn?.usage ?? {});
}

type Most = { readonly tokens?: number; readonly cost?: Cost };

function checkLeft(of: 'turn' | 'session' | 'owner', used: Usage, { tokens, cost }: Most): void {
  const usedTokens = totalTokens(used);
  if (tokens !== undefined && usedTokens >= tokens)
    throw exhausted(of, 'tokens', usedTokens, tokens);
  for (const [currency, most] of Object.entries(cost ?? {})) {
    const micros = used.cost?.[currency] ?? 0;
    if (micros >= most) throw overspent(of, currency, micros, most);
  }
}

// A model without a price would be free: no budget in money could ever be used up.
function checkPrice({ name, price }: Model, limits: readonly (Cost | undefined)[]): void {
  const currencies = limits.flatMap((cost) => Object.keys(cost ?? {}));
  if (currencies.length === 0) return;
  const known = price?.({});
  const missing = currencies.find((currency) => known?.[currency] === undefined);
  if (missing === undefined) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
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
export function checkUsage(invocation: InvocationState, turn: Turn): void {
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
