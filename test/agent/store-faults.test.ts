import { describe, expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import { toErrorBody } from '../../src/core/error.ts';
import type { Chunk, Output } from '../../src/protocol/turn.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { type FaultyStore, faultyStore } from './support/faulty-store.ts';
import { modelSays, must, openApp, say, type TestApp } from './support/kit.ts';

const claimTtl = 60_000;

/** What a caller has been told. */
interface Told {
  readonly chunks: Chunk[];
  output?: Output;
  error?: unknown;
}

interface Scenario {
  readonly name: string;
  readonly define: (app: TestApp) => Agent;
  readonly play: (agent: Agent, told: Told, expire: () => Promise<void>) => Promise<void>;
}

const note = { toolCalls: [{ name: 'note' }] };

function withTools(app: TestApp, snapshot: 'always' | 'never'): Agent {
  app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
    session?.setCustom({ notes: session.messages.length });
    return 'noted';
  });
  const model = scriptedModel({
    patterns: [[/./, note]],
    afterTools: () => 'done',
    otherwise: 'x',
  });
  return app.defineAgent({ name: 'agent', model, tools: ['note'], snapshot }) as unknown as Agent;
}

function stepping(app: TestApp): Agent {
  return app.defineCustomAgent({ name: 'agent' }, async (session) => {
    await session.run(async () => {
      const value = await session.step('once', () => 'stepped');
      session.addMessages(modelSays(value));
    });
    session.setCustom(`after ${session.messages.length}`);
  }) as unknown as Agent;
}

/** Two turns on one connection. */
async function twoTurns(agent: Agent, told: Told): Promise<void> {
  const connection = agent.streamBidi({ sessionId: 's' });
  await connection.sendText('a');
  await connection.sendText('b');
  connection.close();
  for await (const chunk of connection.receive()) told.chunks.push(chunk as Chunk);
  told.output = (await connection.output()) as Output;
}

/** One that is detached, and waited for. */
async function detached(agent: Agent, told: Told, expire: () => Promise<void>): Promise<void> {
  const output = (await agent.run({ ...say('a'), detach: true }, { sessionId: 's' })) as Output;
  const [{ status }] = await Promise.all([agent.wait(must(output.snapshotId)), expire()]);
  if (status === 'succeeded') told.output = output;
}

const scenarios: readonly Scenario[] = [
  { name: 'snapshots everywhere', define: (app) => withTools(app, 'always'), play: twoTurns },
  { name: 'no snapshots', define: (app) => withTools(app, 'never'), play: twoTurns },
  { name: 'steps, and a change behind the loop', define: stepping, play: twoTurns },
  { name: 'a detached run', define: (app) => withTools(app, 'always'), play: detached },
  { name: 'a detached run with steps', define: stepping, play: detached },
];

/** Calls that the scenario makes, each with how often. */
async function callsOf(scenario: Scenario): Promise<Map<string, number>> {
  const store = faultyStore(memoryStore());
  await using app = openApp({ store });
  await scenario.play(scenario.define(app), { chunks: [] }, async () => {});
  const counts = new Map<string, number>();
  for (const call of store.calls) counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
}

/** Every id that somebody was told. */
function idsIn({ chunks, output }: Told): string[] {
  const inChunks = chunks.flatMap(({ snapshotCreated, turnEnd }) => [
    snapshotCreated,
    turnEnd?.snapshotId,
  ]);
  const inOutput = [output?.snapshotId, ...(output?.snapshotIds ?? [])];
  return [...inChunks, ...inOutput].filter((id) => id !== undefined);
}

async function failOnce(
  scenario: Scenario,
  call: string,
  nth: number,
  when: 'before' | 'after',
): Promise<void> {
  const { clock, advance } = movableClock();
  const inner = memoryStore({ clock });
  const store: FaultyStore = faultyStore(inner);
  await using app = openApp({ store, clock, claimTtl });
  const agent = scenario.define(app);
  store.failAt(call, nth, when);
  const told: Told = { chunks: [] };
  // A run whose end could not be saved goes on when its claim has expired.
  const expire = async (): Promise<void> => {
    await eventually(async () => (await app.engine.status()).running === 0);
    advance(2 * claimTtl);
  };
  await scenario.play(agent, told, expire).catch((error: unknown) => {
    told.error = error;
  });
  const what = `${scenario.name}: ${call} #${nth} ${when}`;
  for (const snapshotId of idsIn(told)) {
    const snapshot = await inner.getSnapshot({ agent: 'agent' }, { snapshotId });
    expect(snapshot?.status, `${what}: ${snapshotId} was reported`).toBe('succeeded');
  }
  const fault = told.error === undefined ? told.output?.error : toErrorBody(told.error);
  if (fault !== undefined) {
    expect(fault.message, what).toContain(call);
    expect(JSON.stringify(fault), what).not.toContain('hunter2');
  }
  const starts = told.chunks.filter(({ turnStart }) => turnStart).length;
  const ends = told.chunks.filter(({ turnEnd }) => turnEnd).length;
  expect(ends, `${what}: one turnEnd for each turnStart`).toBe(starts);
  // Lets a claim expire that could not be given back; its run is then taken over, as by the next process.
  await expectUsable(agent, inner, what, () => advance(2 * claimTtl));
}

/** The session takes a turn, at once or as soon as a claim that nobody could give back has expired. */
async function expectUsable(
  agent: Agent,
  inner: Store,
  what: string,
  expire: () => void,
): Promise<void> {
  await eventually(async () => {
    expire();
    const output = await agent.runText('and now?', { sessionId: 's' });
    expect(output.error, what).toBeUndefined();
  }, what);
  expect(await inner.maintenance?.verify(), what).toEqual([]);
}

describe.each(scenarios)('$name', (scenario) => {
  test('S126 a store that throws at any call costs at most that turn', async () => {
    const counts = await callsOf(scenario);
    expect(counts.size).toBeGreaterThan(1);
    for (const [call, count] of counts) {
      for (let nth = 1; nth <= Math.min(count, 4); nth++) {
        await failOnce(scenario, call, nth, 'before');
        await failOnce(scenario, call, nth, 'after');
      }
    }
  });
});

test('S126 reading and the timeline say which call failed', async () => {
  const store = faultyStore(memoryStore());
  await using app = openApp({ store });
  const agent = app.defineAgent({
    name: 'agent',
    model: scriptedModel({ patterns: [], otherwise: 'x' }),
  });
  const { sessionId, snapshotId = '' } = await agent.runText('a');
  const calls: Record<string, () => Promise<unknown>> = {
    getSnapshot: () => agent.getSnapshot({ snapshotId }),
    'runs.load': () => agent.runText('b', { snapshotId }),
    'runs.getRun': () => agent.wait(snapshotId),
    'abort.abortSnapshot': () => agent.abort(snapshotId),
    'timeline.getSession': () => agent.getSession(sessionId),
    'timeline.listSessions': () => agent.listSessions(),
    'timeline.updateSession': () => agent.updateSession(sessionId, { title: 'x' }),
    'timeline.deleteSession': () => agent.deleteSession(sessionId),
    'timeline.listSnapshots': () => agent.listSnapshots(sessionId),
    'timeline.restore': () => agent.restore(snapshotId),
    'timeline.fork': () => agent.fork(snapshotId),
    'timeline.label': () => agent.label(snapshotId, 'x'),
  };
  for (const [call, work] of Object.entries(calls)) {
    store.failAt(call, 1, 'before');
    const error = await work().then(
      () => expect.fail(`${call} was not called`),
      (reason: unknown) => reason,
    );
    expect(toErrorBody(error)).toMatchObject({ status: 'INTERNAL', details: { storeCall: call } });
  }
});
