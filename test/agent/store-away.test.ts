import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { Output } from '../../src/protocol/turn.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { type AwayStore, awayStore } from './support/away-store.ts';
import { createGate } from './support/gate.ts';
import { all, must, openApp, refused, say, type TestApp, told } from './support/kit.ts';

interface Place {
  readonly store: Store;
  /** The first process's way to it. */
  readonly line: AwayStore;
  readonly first: TestApp;
  readonly second: TestApp;
}

/** Two processes on one store; that of the first can break. */
function twoProcesses(claimTtl: number): Place {
  const store = memoryStore();
  const line = awayStore(store);
  return {
    store,
    line,
    first: openApp({ store: line, claimTtl, work: false }),
    second: openApp({ store, claimTtl }),
  };
}

/** An agent whose one turn waits at a gate. */
function gated(app: TestApp, text: string): { agent: Agent; gate: ReturnType<typeof createGate> } {
  const gate = createGate();
  const model = scriptedModel([gate.giving(text)]);
  return { agent: app.defineAgent({ name: 'agent', model }) as unknown as Agent, gate };
}

async function saidIn(store: Store): Promise<string[]> {
  const head = await store.getSnapshot({ agent: 'agent' }, { sessionId: 's' });
  return told(head?.state?.messages);
}

for (const answers of ['not done', 'lost'] as const) {
  for (const accept of [false, true]) {
    const mode = accept ? 'accepted' : 'attached';
    test(`S218: the store is away at the end of an ${mode} turn (commit ${answers}): it is saved once, and told so`, async () => {
      const { store, line, first, second } = twoProcesses(60_000);
      await using _one = first;
      await using _two = second;
      const { agent, gate } = gated(first, 'answer');
      const turn = agent.stream(say('a'), { sessionId: 's', accept });
      const chunks = all(turn.stream);
      await gate.reached;
      line.goAway(answers, /runs\.(commit|release)/);
      gate.open();
      await eventually(() => line.missed('runs.commit') > 0);
      line.comeBack();
      const output = (await turn.output) as Output;
      expect(output.error).toBeUndefined();
      const snapshot = await store.getSnapshot({ agent: 'agent' }, { sessionId: 's' });
      expect(output.snapshotId).toBe(snapshot?.snapshotId);
      expect((await chunks).filter(({ turnEnd }) => turnEnd)).toMatchObject([
        { turnEnd: { finishReason: 'stop', snapshotId: snapshot?.snapshotId } },
      ]);
      expect(await saidIn(store)).toEqual(['user: a', 'model: answer']);
      expect(await store.maintenance?.verify()).toEqual([]);
    });
  }
}

for (const answers of ['not done', 'lost'] as const) {
  test(`S115 a commit that is repeated (${answers}) leaves no gap in the numbers of events`, async () => {
    const { store, line, first, second } = twoProcesses(60_000);
    await using _one = first;
    await using _two = second;
    const { agent, gate } = gated(first, 'answer');
    const turn = agent.stream(say('a'), { sessionId: 's', accept: true });
    await gate.reached;
    line.goAway(answers, /runs\.commit/);
    gate.open();
    await eventually(() => line.missed('runs.commit') > 0);
    line.comeBack();
    const { snapshotId = '' } = await turn.output;
    const page = await store.events?.read({ agent: 'agent' }, snapshotId, { limit: 100 });
    const numbers = page?.events.map(({ seq }) => seq) ?? [];
    expect(numbers.length).toBeGreaterThan(2);
    expect(numbers).toEqual(numbers.map((_, at) => at));
  });
}

test('S217 S218: while the store was away for one process, another has finished its run: its caller is told that result', async () => {
  const { store, line, first, second } = twoProcesses(80);
  await using _one = first;
  await using _two = second;
  const { agent, gate } = gated(first, 'from the first');
  const turn = agent.run(say('a'), { sessionId: 's', accept: true });
  await gate.reached;
  line.goAway('not done');
  gate.open();
  await eventually(() => line.missed('runs.commit') > 0);
  second.defineAgent({ name: 'agent', model: scriptedModel(['from the second']) });
  await eventually(async () => (await saidIn(store)).length === 2);
  line.comeBack();
  const output = (await turn) as Output;
  expect(output).toMatchObject({ finishReason: 'stop' });
  expect(told([must(output.message)])).toEqual(['model: from the second']);
  expect(await saidIn(store)).toEqual(['user: a', 'model: from the second']);
});

test('S218: a caller that no longer waits is told UNKNOWN with the id of the run, and never to try again', async () => {
  const { store, line, first, second } = twoProcesses(80);
  await using _one = first;
  await using _two = second;
  const { agent, gate } = gated(first, 'from the first');
  const control = new AbortController();
  const { signal } = control;
  const turn = agent.stream(say('a'), { sessionId: 's', accept: true, signal });
  const chunks = all(turn.stream);
  await gate.reached;
  line.goAway('not done');
  gate.open();
  await eventually(() => line.missed('runs.commit') > 1);
  control.abort();
  const { error } = (await turn.output) as Output;
  const [start] = await chunks;
  const snapshotId = must(start?.turnStart?.snapshotId);
  expect(error).toMatchObject({ status: 'UNKNOWN', details: { snapshotId } });
  expect(error?.message).toContain(snapshotId);
  expect(error?.message).not.toMatch(/try again/i);
  const heir = second.defineAgent({ name: 'agent', model: scriptedModel(['from the second']) });
  expect(await heir.wait(snapshotId)).toMatchObject({ status: 'succeeded' });
  expect(await saidIn(store)).toEqual(['user: a', 'model: from the second']);
});

test('S218: an attached turn is UNKNOWN once its claim has expired without an answer of the store', async () => {
  const { line, first, second } = twoProcesses(80);
  await using _one = first;
  await using _two = second;
  const { agent, gate } = gated(first, 'answer');
  const turn = agent.run(say('a'), { sessionId: 's', throwOnError: false });
  await gate.reached;
  line.goAway('not done', /runs\.(commit|release|getRun)|getSnapshot/);
  gate.open();
  expect((await turn).error).toMatchObject({ status: 'UNKNOWN' });
});

test('S218: a failed turn whose end could not be saved is not told as failed while another worker may finish it', async () => {
  const { store, line, first, second } = twoProcesses(80);
  await using _one = first;
  await using _two = second;
  const gate = createGate();
  const agent = first.defineCustomAgent({ name: 'agent' }, (session) =>
    session.run(async () => {
      await gate.wait();
      throw new Error('broken here');
    }),
  );
  const turn = agent.run(say('a'), { sessionId: 's', accept: true });
  await gate.reached;
  line.goAway('not done');
  gate.open();
  await eventually(() => line.missed('runs.commit') > 0);
  second.defineAgent({ name: 'agent', model: scriptedModel(['works there']) });
  await eventually(async () => (await saidIn(store)).length === 2);
  line.comeBack();
  const output = (await turn) as Output;
  expect(output.error).toBeUndefined();
  expect(told([must(output.message)])).toEqual(['model: works there']);
});

test('S218: an accepted turn whose claim got no answer is UNAVAILABLE only when nobody will run it', async () => {
  const { store, line, first, second } = twoProcesses(5_000);
  await using _one = first;
  await using _two = second;
  const agent = first.defineAgent({ name: 'agent', model: scriptedModel(['x']) });
  line.goAway('lost', /runs\.(claim)/);
  await refused(agent.run(say('a'), { sessionId: 's', accept: true }), 'UNAVAILABLE');
  expect(await store.runs?.listRuns()).toEqual([]);
});

test('S218: and UNKNOWN when that cannot be known', async () => {
  const { store, line, first, second } = twoProcesses(80);
  await using _one = first;
  await using _two = second;
  const agent = first.defineAgent({ name: 'agent', model: scriptedModel(['x']) });
  line.goAway('lost', /runs\.claim/);
  line.goAway('not done');
  const error = await refused(agent.run(say('a'), { sessionId: 's', accept: true }), 'UNKNOWN');
  const [run] = (await store.runs?.listRuns()) ?? [];
  expect(error.details).toEqual({ snapshotId: run?.runId });
});
