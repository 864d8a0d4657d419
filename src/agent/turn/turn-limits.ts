import { WaymarkError } from '../../core/error.ts';
import { after } from '../../core/time/after.ts';
import { totalTokens } from '../../generate/usage.ts';
import type { Totals } from '../../store/contract/store.ts';
import type { InvocationState } from './invocation-state.ts';
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

/** What the session has used including this turn; `undefined` if the agent has no session limits. */
export function totalsOf(invocation: InvocationState, turn: Turn): Totals | undefined {
  if (invocation.spec.limits.session === undefined) return undefined;
  const { tokens = 0, toolCalls = 0 } = invocation.position.totals ?? {};
  return {
    tokens: tokens + totalTokens(turn.usage),
    toolCalls: toolCalls + turn.toolCalls,
  };
}

/** Throws if the session has used up its limits, before any model call. */
export function checkUnspent({ spec, position }: InvocationState): void {
  const { tokens = 0, toolCalls = 0 } = position.totals ?? {};
  const most = spec.limits.session;
  if (most?.tokens !== undefined && tokens >= most.tokens) {
    throw exhausted('session', 'tokens', tokens, most.tokens);
  }
  if (most?.toolCalls !== undefined && toolCalls >= most.toolCalls) {
    throw exhausted('session', 'toolCalls', toolCalls, most.toolCalls);
  }
}

/** Throws if the turn or its session has no tokens left for another model call. */
export function checkTokensLeft(invocation: InvocationState, turn: Turn): void {
  const { turn: ofTurn, session: ofSession } = invocation.spec.limits;
  checkLeft('turn', totalTokens(turn.usage), ofTurn?.tokens);
  checkLeft('session', totalsOf(invocation, turn)?.tokens ?? 0, ofSession?.tokens);
}

function checkLeft(of: string, used: number, most: number | undefined): void {
  if (most !== undefined && used >= most) throw exhausted(of, 'tokens', used, most);
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

function exhausted(of: string, what: string, used: number, most: number): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The ${of} has used ${used} of ${most} ${what}. Raise \`limits.${of}.${what}\`, or start a new session.`,
    { details: { limit: `${of}.${what}`, used, most } },
  );
}
