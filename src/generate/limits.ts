import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { checkNumbers, checkOptions, type OptionNames } from '../core/options.ts';
import type { Cost, Usage } from '../protocol/turn.ts';
import { totalTokens } from '../protocol/usage.ts';

/** Limits of one generate call. Exceeding one ends the call with RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED. */
export interface Limits {
  /** Total time in milliseconds. */
  readonly timeout?: number;
  /** Tokens of all model calls; once they are used up, the model is not called again. */
  readonly tokens?: number;
  /** Cost of all model calls, in micro-units by currency: `{ USD: 250_000 }` is $0.25. Once it is used up, the model is not called again. */
  readonly cost?: Cost;
  /** Total number of tool calls. */
  readonly toolCalls?: number;
  /**
   * Milliseconds without output from the model.
   * @default 600000
   */
  readonly idleTimeout?: number;
  /**
   * Characters of one answer of the model, including tool requests.
   * @default 10000000
   */
  readonly answerLength?: number;
  /**
   * Tool calls that run at the same time; the others of the same answer wait for them.
   * @default 16
   */
  readonly toolConcurrency?: number;
  /**
   * Characters of one tool result as JSON; the error asks the model to request less.
   * @default 4000000
   */
  readonly toolResultLength?: number;
}

const limitNames: OptionNames<Limits> = {
  timeout: true,
  tokens: true,
  cost: true,
  toolCalls: true,
  idleTimeout: true,
  answerLength: true,
  toolConcurrency: true,
  toolResultLength: true,
};

/** Refuses limits that do not exist, or are no numbers; `what` names whose they are. */
export function checkLimits(limits: Limits, what: string): void {
  checkOptions(limits, limitNames, what, { timeMs: 'timeout', idleMs: 'idleTimeout' });
  const { cost: _, ...numbers } = limits;
  checkNumbers(numbers, Object.keys(numbers) as (keyof typeof numbers)[], what);
}

export const defaultLimits = {
  idleTimeout: 600_000,
  answerLength: 10_000_000,
  toolConcurrency: 16,
  toolResultLength: 4_000_000,
} as const satisfies Limits;

/** Throws when the tokens or the money are used up. */
export function checkTokens({ tokens, cost }: Limits, used: Usage): void {
  for (const [currency, most] of Object.entries(cost ?? {})) {
    const spent = used.cost?.[currency] ?? 0;
    if (spent < most) continue;
    const amount = `${spent / 1e6} of ${most / 1e6} ${currency}`;
    throw exhausted('cost', `${amount} are spent, and the answer is not complete`, {
      currency,
      used: spent,
      most,
    });
  }
  if (tokens === undefined || totalTokens(used) < tokens) return;
  throw exhausted(
    'tokens',
    `${totalTokens(used)} of ${tokens} tokens are used, and the answer is not complete`,
    { used: totalTokens(used), most: tokens },
  );
}

/** Throws when so many tool calls are too many. */
export function checkToolCalls({ toolCalls }: Limits, count: number): void {
  if (toolCalls === undefined || count <= toolCalls) return;
  throw exhausted('toolCalls', `The model asked for ${count} tool calls of at most ${toolCalls}`, {
    used: count,
    most: toolCalls,
  });
}

/** Throws when the model has been answered by tools for the last time and still asks for more. */
export function checkTurns(maxTurns: number, turn: number): void {
  if (turn < maxTurns) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The model still asks for tools after ${maxTurns} tool iterations. Raise \`maxTurns\`, or find out why it does not stop.`,
    { details: { limit: 'maxTurns', maxTurns } },
  );
}

function exhausted(limit: keyof Limits, what: string, amounts: JsonObject): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `${what}. Raise \`limits.${limit}\`, or ask for less.`,
    { details: { limit, ...amounts } },
  );
}
