import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import { systemClock } from '../../src/core/time.ts';
import type { ModelRunner } from '../../src/generate/model.ts';
import type { SpendSupport, Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { callCost, openBudgetApp, takeTurn } from './support/budget-app.ts';
import { createGate, type Gate } from './support/gate.ts';
import { must, openApp } from './support/kit.ts';
import { localStores, withLocalStore } from './support/local-stores.ts';
import { mortalStore } from './support/mortal-store.ts';

const owner = 'ann';

/** The number of reservations that are asked for in a store. */
function countReserve(store: Store): { readonly store: Store; readonly asked: () => number } {
  let asked = 0;
  const { reserve, ...spend } = store.spend as Required<SpendSupport>;
  const counting = {
    ...spend,
    reserve: (reservation: Parameters<typeof reserve>[0]) => {
      asked++;
      return reserve(reservation);
    },
  };
  return { store: { ...store, spend: counting }, asked: () => asked };
}

test.each(localStores)(
  'S690 S691 50 concurrent turns make the ten calls that a budget allows (%s)',
  async (name) => {
    await withLocalStore(name, async (store) => {
      let calls = 0;
      const { app, chat } = openBudgetApp({
        store,
        async onCall() {
          calls++;
          await systemClock.sleep(1);
        },
      });
      const ends = await Promise.all(Array.from({ length: 50 }, () => takeTurn(chat)));
      expect(calls).toBe(10);
      expect(ends.filter((end) => end === 'stop')).toHaveLength(10);
      expect(ends.filter((end) => end === 'RESOURCE_EXHAUSTED')).toHaveLength(40);
      await app.close();
    });
  },
);

test('S690 an agent without a budget of its session or owner reserves nothing', async () => {
  const { store, asked } = countReserve(memoryStore());
  for (const limits of [{}, { turn: { tokens: 1_000_000 } }]) {
    const { app, chat } = openBudgetApp({ store, onCall: () => {}, limits });
    expect(await takeTurn(chat)).toBe('stop');
    await app.close();
  }
  expect(asked()).toBe(0);
});

/** A budget of one call at a time: each may cost ten times what it does. */
const narrow = {
  owner: { cost: { USD: 12 * callCost } },
  reserve: { cost: { USD: 10 * callCost } },
};

/** Starts turns whose calls wait at gates. */
function startTurns(
  count: number,
  limits: typeof narrow = narrow,
): { readonly gates: Gate[]; readonly turns: Promise<string>[]; readonly calls: () => number } {
  const gates = Array.from({ length: count }, createGate);
  let calls = 0;
  const { chat } = openBudgetApp({
    store: memoryStore(),
    limits,
    onCall: () => gates[calls++]?.wait(),
  });
  return {
    gates,
    turns: Array.from({ length: count }, () => takeTurn(chat)),
    calls: () => calls,
  };
}

test('S692 a call that may fit once others have settled waits for them', async () => {
  const { gates, turns, calls } = startTurns(4);
  for (const [at, gate] of gates.slice(0, 3).entries()) {
    await gate.reached;
    expect(calls()).toBe(at + 1);
    gate.open();
  }
  // Three have cost 3 of 12, so that no call that may cost 10 fits any more.
  const ends = await Promise.all(turns);
  expect(ends.sort()).toEqual(['RESOURCE_EXHAUSTED', 'stop', 'stop', 'stop']);
  expect(calls()).toBe(3);
});

test('S692 a stop and the time limit of a turn end its wait', async () => {
  const { clock, advance } = movableClock();
  const { store, asked } = countReserve(memoryStore({ clock }));
  const gate = createGate();
  const { chat, app } = openBudgetApp({
    store,
    clock,
    limits: { ...narrow, turn: { timeout: 60_000 } },
    onCall: () => gate.wait(),
  });
  const first = takeTurn(chat);
  await gate.reached;
  const caller = new AbortController();
  const stopped = takeTurn(chat, caller.signal);
  const queued = takeTurn(chat, caller.signal);
  await eventually(() => expect(asked()).toBeGreaterThan(3));
  caller.abort();
  expect(await Promise.all([stopped, queued])).toEqual(['aborted', 'aborted']);
  const before = asked();
  const late = takeTurn(chat);
  await eventually(() => expect(asked()).toBeGreaterThan(before + 1));
  advance(60_001);
  expect(await late).toBe('DEADLINE_EXCEEDED');
  gate.open();
  await first;
  await app.close();
});

test('S692 a wait ends after ten minutes, and its silence is not that of the model', async () => {
  const { clock, advance } = movableClock();
  const { store, asked } = countReserve(memoryStore({ clock }));
  const gate = createGate();
  const { chat, app } = openBudgetApp({
    store,
    clock,
    limits: { ...narrow, turn: { idleTimeout: 1_000_000 } },
    onCall: () => gate.wait(),
  });
  const first = takeTurn(chat);
  await gate.reached;
  const quick = app.defineAgent({
    name: 'quick',
    model: 'm',
    limits: { ...narrow, turn: { idleTimeout: 1_000 } },
  }) as unknown as Agent;
  const waiting = takeTurn(quick);
  for (const minutes of [0, 5, 4]) {
    const before = asked();
    advance(minutes * 60_000);
    await eventually(() => expect(asked()).toBeGreaterThan(before + 1));
  }
  advance(60_001);
  expect(await waiting).toBe('RESOURCE_EXHAUSTED');
  gate.open();
  expect(await first).toBe('stop');
  await app.close();
});

test('S691 a call that may need more than is left is not made, and the error says what it needs', async () => {
  await using app = openApp({ price: (_, { totalTokens = 0 }) => ({ USD: totalTokens * 2 }) });
  let calls = 0;
  const run: ModelRunner = async () => {
    calls++;
    const usage = { inputTokens: 10, outputTokens: 90, totalTokens: 100 };
    return {
      message: { role: 'model', content: [{ text: 'said' }] },
      finishReason: 'stop',
      usage,
    };
  };
  const model = app.defineModel({ name: 'm' }, run);
  const chat = app.defineAgent({
    name: 'chat',
    model,
    config: { maxOutputTokens: 90 },
    limits: { owner: { cost: { USD: 500 } } },
  });
  const options = { owner, throwOnError: false } as const;
  expect((await chat.runText('go', options)).finishReason).toBe('stop');
  expect((await chat.runText('go', options)).finishReason).toBe('stop');
  const { error } = await chat.runText('go', options);
  expect(error).toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    message: expect.stringContaining('config.maxOutputTokens'),
    details: { limit: 'owner.cost', currency: 'USD', used: 400, most: 500, reserved: 0 },
  });
  const needed = Number(must(error?.details as { needed: number } | undefined).needed);
  expect(needed).toBeGreaterThan(180);
  expect(needed).toBeLessThan(500);
  expect(calls).toBe(2);
});

test('S693 without a bound, calls begin as long as something is left after what the others may use', async () => {
  const gates = Array.from({ length: 3 }, createGate);
  let calls = 0;
  await using app = openApp();
  const model = app.defineModel({ name: 'm' }, async () => {
    await gates[calls++]?.wait();
    return {
      message: { role: 'model', content: [{ text: 'said' }] },
      finishReason: 'stop',
      usage: { inputTokens: 10, outputTokens: 990, totalTokens: 1_000 },
    };
  });
  // Each call is assumed to need a few more than 4,096 tokens: two begin, and the third waits.
  const limits = { owner: { tokens: 5_500 } };
  const chat = app.defineAgent({ name: 'chat', model, limits }) as unknown as Agent;
  const turns = Array.from({ length: 3 }, () => takeTurn(chat));
  await Promise.all(gates.slice(0, 2).map(({ reached }) => reached));
  expect(calls).toBe(2);
  gates[0]?.open();
  await gates[2]?.reached;
  gates[1]?.open();
  gates[2]?.open();
  expect(await Promise.all(turns)).toEqual(['stop', 'stop', 'stop']);
});

test('S695 a call that fails or is stopped gives its reservation back', async () => {
  const store = memoryStore();
  let calls = 0;
  const { chat, app } = openBudgetApp({
    store,
    limits: narrow,
    async onCall(signal) {
      calls++;
      if (calls === 1) throw new Error('on purpose');
      if (calls > 2) return;
      caller.abort();
      await systemClock.sleep(60_000, signal);
    },
  });
  const caller = new AbortController();
  expect(await takeTurn(chat)).toBe('INTERNAL');
  expect(await takeTurn(chat, caller.signal)).toBe('aborted');
  expect(await takeTurn(chat)).toBe('stop');
  expect(await store.spend?.total({ owner })).toMatchObject({ cost: { USD: callCost } });
  await app.close();
});

test('S696 a store without reservations keeps budgets for one call after the other', async () => {
  const memory = memoryStore();
  const { reserve: _, ...spend } = memory.spend as SpendSupport;
  let calls = 0;
  const { app, chat } = openBudgetApp({
    store: { ...memory, spend },
    onCall: () => void calls++,
  });
  const ends: string[] = [];
  for (let n = 0; n < 12; n++) ends.push(await takeTurn(chat));
  expect(calls).toBe(10);
  expect(ends.slice(10)).toEqual(['RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED']);
  await app.close();
});

/** One turn: what its call may use at most, what it uses, and how it ends. */
interface Turn {
  readonly agent: 0 | 1 | 2;
  /** The part of the bound that is used, in percent. */
  readonly part: number;
  /** `dies`: the call is billed, and then its process is gone. */
  readonly kind: 'answers' | 'fails' | 'dies';
  readonly process: 0 | 1;
}

const outputTokens = [10, 60, 300] as const;
const kind = fc.oneof(
  { weight: 8, arbitrary: fc.constant('answers' as const) },
  { weight: 1, arbitrary: fc.constant('fails' as const) },
  { weight: 1, arbitrary: fc.constant('dies' as const) },
);
const turns: fc.Arbitrary<readonly Turn[]> = fc.array(
  fc.record({
    agent: fc.constantFrom(0, 1, 2),
    part: fc.integer({ min: 0, max: 100 }),
    kind,
    process: fc.constantFrom(0, 1),
  }),
  { minLength: 2, maxLength: 24 },
);

async function spendAll(
  plan: readonly Turn[],
  budget: number,
  inMoney: boolean,
  openStore: (clock: ReturnType<typeof movableClock>['clock']) => Store,
): Promise<void> {
  const { clock, advance } = movableClock();
  const store = openStore(clock);
  const lines = [mortalStore(store), mortalStore(store)];
  let billed = 0;
  let highest = 0;
  const limits = { owner: inMoney ? { cost: { USD: budget * 3 } } : { tokens: budget } };
  const isDead = [false, false];
  let isOver = false;
  const processes = lines.map((line) => {
    const app = openApp({
      store: line,
      clock,
      price: (_, { totalTokens = 0 }) => ({ USD: totalTokens * 3 }),
    });
    const agents = outputTokens.map((maxOutputTokens, at) => {
      const run: ModelRunner = async ({ messages }) => {
        const said = messages.at(-1)?.content[0];
        const number = Number(said !== undefined && 'text' in said ? said.text : 0);
        const turn = plan[number] as Turn;
        await systemClock.sleep(number % 3);
        if (turn.kind === 'fails') throw new Error('on purpose');
        const used = Math.floor((maxOutputTokens * turn.part) / 100);
        billed += used;
        highest = Math.max(highest, billed);
        // A call that waited while its process was dead begins when the line is healed, and must not cut it again.
        if (turn.kind === 'dies' && !isOver) {
          isDead[turn.process] = true;
          line.cut();
        }
        return {
          message: { role: 'model', content: [{ text: 'said' }] },
          finishReason: 'stop',
          usage: { inputTokens: 0, outputTokens: used, totalTokens: used },
        };
      };
      const model = app.defineModel({ name: `m${at}` }, run);
      const config = { maxOutputTokens };
      return app.defineAgent({ name: `a${at}`, model, config, limits }) as unknown as Agent;
    });
    return { app, agents };
  });
  const open = new Set(plan.keys());
  for (const [number, { agent, process }] of plan.entries()) {
    const turn = processes[process]?.agents[agent]?.runText(`${number}`, {
      owner,
      throwOnError: false,
    });
    void turn?.then(() => open.delete(number));
  }
  await eventually(() => {
    const alive = [...open].filter((at) => !isDead[plan[at]?.process ?? 0]);
    // Calls of a dead process never end for the others; they count as lost after a while.
    if (alive.length > 0 && isDead.includes(true)) advance(60_000);
    expect(alive).toEqual([]);
  });
  expect(highest).toBeLessThanOrEqual(budget);
  if (!isDead.includes(true)) {
    expect(await store.spend?.total({ owner })).toMatchObject(
      billed === 0 ? {} : { totalTokens: billed },
    );
  }
  isOver = true;
  for (const line of lines) await line.heal();
  for (const { app } of processes) await app.close({ grace: 0 });
}

test.each([
  ['memory', 60, (clock) => memoryStore({ clock })],
  ['sqlite', 15, (clock) => sqliteStore(':memory:', { clock })],
] satisfies [string, number, Parameters<typeof spendAll>[3]][])(
  'S691 S694 S695 whatever concurrent calls may use and use, and whichever process dies, a budget is not exceeded (%s)',
  { timeout: 600_000 },
  async (_, numRuns, openStore) => {
    const budget = fc.integer({ min: 100, max: 3_000 });
    const property = fc.asyncProperty(turns, budget, fc.boolean(), (plan, most, inMoney) =>
      spendAll(plan, most, inMoney, openStore),
    );
    await fc.assert(property, { numRuns, endOnFailure: true });
  },
);
