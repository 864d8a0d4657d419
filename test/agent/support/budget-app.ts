import type { Agent } from '../../../src/agent/contract/agent.ts';
import type { AgentLimits } from '../../../src/agent/contract/spec.ts';
import { type App, waymark } from '../../../src/app.ts';
import type { Clock } from '../../../src/core/time.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { openShared as openOther, type SharedStore } from '../../support/shared-store.ts';

/** Opens the store that processes share. */
export function openShared(shared: SharedStore): Store {
  if (shared.kind !== 'postgres') return openOther(shared);
  const { connectionString, schema } = shared;
  return postgresStore({ connectionString, schema, max: 4 });
}

/** The cost of every call, in micro-dollars. */
export const callCost = 1_000;
/** A budget of ten calls. */
const tenCalls: AgentLimits = {
  owner: { cost: { USD: 10 * callCost } },
  reserve: { cost: { USD: callCost } },
};

/** An app whose agent has a budget, by default of ten calls. */
export function openBudgetApp({
  store,
  onCall,
  clock,
  limits = tenCalls,
}: {
  readonly store: Store;
  readonly onCall: (signal: AbortSignal) => void | Promise<void>;
  readonly clock?: Clock;
  readonly limits?: AgentLimits;
}): { readonly app: App; readonly chat: Agent } {
  const app = waymark({
    store,
    work: false,
    ...(clock && { clock }),
    price: () => ({ USD: callCost }),
  });
  const model = app.defineModel({ name: 'm' }, async (_, { signal }) => {
    await onCall(signal);
    return {
      message: { role: 'model', content: [{ text: 'said' }] },
      finishReason: 'stop',
      usage: { inputTokens: 9, outputTokens: 1, totalTokens: 10 },
    };
  });
  return { app, chat: app.defineAgent({ name: 'chat', model, limits }) as unknown as Agent };
}

/** The finish reason of a turn, or the status that it failed with. */
export type TurnEnd = string;

/** Takes a turn of the owner in a new session. */
export async function takeTurn(chat: Agent, signal?: AbortSignal): Promise<TurnEnd> {
  const { finishReason, error } = await chat.runText('go', {
    owner: 'ann',
    throwOnError: false,
    ...(signal && { signal }),
  });
  return error?.status ?? finishReason ?? 'unknown';
}
