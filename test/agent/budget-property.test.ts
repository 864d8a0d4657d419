import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { AgentLimits } from '../../src/agent/contract/spec.ts';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import { WaymarkError } from '../../src/core/error.ts';
import type { Clock } from '../../src/core/time.ts';
import { retry } from '../../src/generate/middleware/retry.ts';
import type { ModelRunner } from '../../src/generate/model.ts';
import type { Part } from '../../src/protocol/message.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { cleanSchemas } from '../support/clean-schemas.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres } from '../support/postgres.ts';
import { postgresClock } from '../support/postgres-clock.ts';
import { must, openApp, say, type TestApp } from './support/kit.ts';

/** What the model does in one call. A plan that is used up answers with text. */
interface Step {
  /** `fails`: an error that is tried again; `moves`: another process takes over the run; `late`: and this one is still answered. */
  readonly kind: 'text' | 'tool' | 'helper' | 'fails' | 'moves' | 'late';
  readonly tokens: number;
}

interface Plan {
  readonly steps: readonly Step[];
  readonly turns: readonly ('run' | 'detach' | 'restore')[];
  readonly microsPerToken: number;
  readonly limits: AgentLimits;
}

const kinds = { tool: 3, helper: 3, text: 2, fails: 1, moves: 1, late: 1 } as const;
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    ...Object.entries(kinds).map(([kind, weight]) => ({
      weight,
      arbitrary: fc.constant(kind as Step['kind']),
    })),
  ),
  tokens: fc.integer({ min: 1, max: 20 }),
});
const most = fc.integer({ min: 1, max: 120 });
const money = most.map((tokens) => ({ USD: tokens * 5 }));
const limits: fc.Arbitrary<AgentLimits> = fc.oneof(
  fc.constant({}),
  most.map((tokens) => ({ session: { tokens } })),
  money.map((cost) => ({ session: { cost } })),
  most.map((tokens) => ({ owner: { tokens, per: 'day' as const } })),
  money.map((cost) => ({ owner: { cost } })),
  fc.record({ turn: fc.record({ cost: money }), session: fc.record({ cost: money }) }),
);
const plans: fc.Arbitrary<Plan> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 16 }),
  turns: fc.array(fc.constantFrom('run', 'detach', 'restore'), { minLength: 1, maxLength: 5 }),
  microsPerToken: fc.integer({ min: 1, max: 9 }),
  limits,
});

const sessionId = 's';
const claimTtl = 60_000;

/** What was really spent, counted by the model itself. */
interface Made {
  tokens: number;
  micros: number;
  /** Calls that began although a budget was used up. */
  violations: string[];
}

/** A model that follows the plan, whichever process calls it. */
function actor({ steps, microsPerToken, limits }: Plan, made: Made, move: () => void): ModelRunner {
  const queue = [...steps];
  const { session, owner: ofOwner } = limits;
  const budgets = [
    [() => made.tokens, session?.tokens],
    [() => made.tokens, ofOwner?.tokens],
    [() => made.micros, session?.cost?.USD],
    [() => made.micros, ofOwner?.cost?.USD],
  ] as const;
  return async ({ tools }, { signal }) => {
    for (const [used, budget] of budgets) {
      if (budget !== undefined && used() >= budget) made.violations.push(`${used()} of ${budget}`);
    }
    let { kind, tokens } = queue.shift() ?? { kind: 'text', tokens: 1 };
    const has = (name: string): boolean => tools.some((each) => each.name === name);
    // A late answer beside the calls of the next attempt would make their order a matter of luck.
    if (kind === 'late' && Object.keys(limits).length > 0) kind = 'moves';
    if (kind === 'fails') {
      throw new WaymarkError('UNAVAILABLE', 'on purpose', { details: { retryable: true } });
    }
    // Only the process that works on the turn is replaced; a sub-agent has no one to take it over.
    if ((kind === 'moves' || kind === 'late') && has('helper')) {
      move();
      const stopped = new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      await stopped;
      if (kind === 'moves') throw signal.reason;
    }
    const wanted =
      kind === 'helper' && !has('helper') ? 'look' : kind === 'helper' ? 'helper' : 'look';
    const asks = (kind === 'tool' || kind === 'helper') && has(wanted);
    made.tokens += tokens;
    made.micros += tokens * microsPerToken;
    const content: Part[] = asks
      ? [{ toolRequest: { name: wanted, input: { message: 'go' } } }]
      : [{ text: 'said' }];
    return {
      message: { role: 'model', content },
      finishReason: 'stop',
      usage: { inputTokens: tokens - 1, outputTokens: 1, totalTokens: tokens },
    };
  };
}

/** Where the processes of a plan keep their sessions, and what moves their time. */
interface Place {
  readonly store: Store;
  /** Nothing else is in the store under this owner. */
  readonly owner: string;
  readonly clock?: Clock;
  readonly advance: (ms: number) => void | Promise<void>;
}

async function live(plan: Plan, { store: given, owner, clock, advance }: Place): Promise<void> {
  // A process that ends closes its connection, not the store of the others.
  const store: Store = { ...given, close: async () => {} };
  const made: Made = { tokens: 0, micros: 0, violations: [] };
  const apps: TestApp[] = [];
  let chat: Agent | undefined;
  let moving: Promise<unknown> = Promise.resolve();
  const open = (): void => {
    const app = openApp({
      store,
      ...(clock && { clock }),
      claimTtl,
      price: (_model, { totalTokens = 0 }) => ({ USD: totalTokens * plan.microsPerToken }),
    });
    apps.push(app);
    const model = app.defineModel({ name: 'actor' }, run);
    const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
    const use = [retry({ attempts: 3, delay: 0 })];
    const helper = app.defineAgent({ name: 'helper', model, tools: [look], use });
    chat = app.defineAgent({
      name: 'chat',
      model,
      tools: [look, agentTool(helper)],
      use,
      compact: { whenTokens: 8, keepTokens: 4, count: () => 1 },
      limits: plan.limits,
    }) as unknown as Agent;
  };
  const run = actor(plan, made, () => {
    const leaving = must(apps.at(-1));
    open();
    // The other process looks for runs that were left every now and then.
    moving = leaving
      .close({ grace: 0 })
      .then(() => advance(2 * claimTtl))
      .then(() => must(apps.at(-1)).engine.recover());
  });
  open();
  let first: string | undefined;
  for (const kind of plan.turns) {
    if (kind === 'restore' && first !== undefined) await must(chat).restore(first, { owner });
    // A turn that is to be taken over has to be one that another process may continue.
    const { snapshotId } = await must(chat).run(
      { ...say('go'), detach: true },
      { sessionId, owner },
    );
    const { status } = await waitFor(() => must(chat), must(snapshotId), owner);
    await moving;
    if (status === 'succeeded') first ??= snapshotId;
  }
  await eventually(async () => {
    const { totalTokens = 0, cost = {} } = (await store.spend?.total({ owner })) ?? {};
    expect({ tokens: totalTokens, micros: cost.USD ?? 0 }).toEqual({
      tokens: made.tokens,
      micros: made.micros,
    });
  });
  expect(made.violations).toEqual([]);
  for (const app of apps) await app.close({ grace: 0 });
}

/** The end of a run, from whichever process has it by then. */
async function waitFor(
  agent: () => Agent,
  snapshotId: string,
  owner: string,
): Promise<{ readonly status: string }> {
  for (;;) {
    const at = agent();
    try {
      const ended = await at.wait(snapshotId, { owner });
      if (ended.status !== 'pending') return ended;
    } catch (error) {
      if (agent() === at) throw error;
    }
  }
}

const title =
  'S380 S383 S384 with sub-agents, retries, summaries, takeovers and restores, what is recorded is what was spent, and no call begins once a budget is used up';
const isLong = process.env.LONG === '1';
const timeout = 3_600_000;

test.each([
  ['memory', isLong ? 300 : 60, (clock: Clock) => memoryStore({ clock })],
  ['sqlite', isLong ? 60 : 12, (clock: Clock) => sqliteStore(':memory:', { clock })],
] as const)(`${title} (%s)`, { timeout }, async (_, numRuns, openStore) => {
  const property = fc.asyncProperty(plans, async (plan) => {
    const { clock, advance } = movableClock();
    const store = openStore(clock);
    await live(plan, { store, owner: 'ann', clock, advance });
    await store.close?.();
  });
  await fc.assert(property, { numRuns, endOnFailure: true });
});

test(`${title} (postgres)`, { timeout }, async () => {
  const postgres = await startPostgres();
  const database = await postgresClock(postgres.connectionString);
  const schemas = cleanSchemas(postgres.connectionString);
  try {
    const { connectionString, advance } = database;
    const schema = schemas.take();
    let lives = 0;
    const property = fc.asyncProperty(plans, async (plan) => {
      const store = postgresStore({ connectionString, schema, max: 4 });
      await live(plan, { store, owner: `ann ${lives++}`, advance });
      await store.close?.();
    });
    await fc.assert(property, { numRuns: isLong ? 15 : 4, endOnFailure: true });
    await schemas.giveBack(schema);
  } finally {
    await database.close();
    await schemas.close();
    await postgres.stop();
  }
});
