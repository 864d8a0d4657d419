import { expect, test } from 'vitest';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import { memoryStore, waymark } from '../../src/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { createGate } from './support/gate.ts';
import { must, openApp, say } from './support/kit.ts';

const usage = { totalTokens: 10 };
const call = { toolCalls: [{ name: 'look' }], usage };

function openTools(): ReturnType<typeof openApp> {
  const app = openApp();
  app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
  return app;
}

test('S15 a turn that takes longer than its time fails', async () => {
  const clock = fakeClock();
  await using app = openApp({ clock });
  const model = scriptedModel([{ chunks: ['half'], hang: true }, 'next']);
  const chat = app.defineAgent({ name: 'chat', model, limits: { turn: { timeout: 1_000 } } });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  await connection.sendText('never');
  for await (const { modelChunk } of connection.receive()) if (modelChunk) break;
  await clock.advance(1_000);
  const output = await connection.output();
  expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'DEADLINE_EXCEEDED' } });
  expect(model.stops).toBe(1);
  expect(model.requests).toHaveLength(1);
  const { items } = await chat.listSnapshots(output.sessionId);
  expect(items).toMatchObject([{ status: 'failed', error: { status: 'DEADLINE_EXCEEDED' } }]);
});

test('S15 a turn that uses more tokens or tool calls than it may fails', async () => {
  await using app = openTools();
  const tokens = app.defineAgent({
    name: 'tokens',
    model: scriptedModel([call, call, call]),
    tools: ['look'],
    limits: { turn: { tokens: 25 } },
  });
  expect(await tokens.runText('a', { throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { status: 'RESOURCE_EXHAUSTED', details: { limit: 'turn.tokens', used: 30, most: 25 } },
    usage: { totalTokens: 30 },
  });
  const calls = app.defineAgent({
    name: 'calls',
    model: scriptedModel([{ toolCalls: [{ name: 'look' }, { name: 'look' }] }, call, 'never']),
    tools: ['look'],
    limits: { turn: { toolCalls: 2 } },
  });
  expect(await calls.runText('a', { throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { details: { limit: 'turn.toolCalls', used: 3, most: 2 } },
  });
});

test('S16 a session’s limit counts over turns, calls and detached runs, and then spares the model', async () => {
  await using app = openTools();
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: 'ok', usage })));
  const chat = app.defineAgent({ name: 'chat', model, limits: { session: { tokens: 40 } } });
  const sessionId = 's';
  await chat.runText('a', { sessionId });
  const connection = chat.streamBidi({ sessionId });
  await connection.sendText('b');
  await connection.output();
  const detached = await chat.run({ ...say('c'), detach: true }, { sessionId });
  await chat.wait(must(detached.snapshotId));
  expect(await chat.runText('d', { sessionId })).toMatchObject({ finishReason: 'stop' });
  expect(model.requests).toHaveLength(4);
  const spent = await chat.runText('e', { sessionId, throwOnError: false });
  expect(spent).toMatchObject({
    finishReason: 'failed',
    error: {
      status: 'RESOURCE_EXHAUSTED',
      details: { limit: 'session.tokens', used: 40, most: 40 },
    },
  });
  expect(model.requests).toHaveLength(4);
  // Going back gives nothing back: it was spent.
  const from = { snapshotId: must(detached.snapshotId), throwOnError: false };
  expect(await chat.runText('f', from)).toMatchObject({
    finishReason: 'failed',
    error: { details: { limit: 'session.tokens', used: 40 } },
  });
  expect(model.requests).toHaveLength(4);
});

test('S16 tool calls count as well, those of stopped turns and behind the loop too', async () => {
  await using app = openTools();
  const gate = createGate();
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([call, gate.giving('late'), call, 'ok', 'never']),
    tools: ['look'],
    snapshot: 'always',
    limits: { session: { toolCalls: 2 } },
  });
  const sessionId = 's';
  const caller = new AbortController();
  const stopped = chat.runText('a', { sessionId, signal: caller.signal });
  await gate.reached;
  caller.abort();
  expect(await stopped).toMatchObject({ finishReason: 'aborted' });
  expect(await chat.runText('b', { sessionId })).toMatchObject({ finishReason: 'stop' });
  expect(await chat.runText('c', { sessionId, throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { details: { limit: 'session.toolCalls', used: 2, most: 2 } },
  });
});

test('S220: once a session’s tokens are used up, no further turn calls the model', async () => {
  await using app = openTools();
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: 'ok', usage })));
  const chat = app.defineAgent({ name: 'chat', model, limits: { session: { tokens: 25 } } });
  const sessionId = 's';
  const reasons: unknown[] = [];
  for (let n = 0; n < 6; n++) {
    reasons.push((await chat.runText('a', { sessionId, throwOnError: false })).finishReason);
  }
  expect(reasons).toEqual(['stop', 'stop', 'failed', 'failed', 'failed', 'failed']);
  // The third call is the one that passes the limit: what a call costs is known after it.
  expect(model.requests).toHaveLength(3);
  expect(await chat.runText('b', { sessionId, throwOnError: false })).toMatchObject({
    error: { details: { limit: 'session.tokens', used: 30, most: 25 } },
  });
});

test('S220: a session whose first turn failed remembers what that has used, detached or not', async () => {
  await using app = openTools();
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: 'ok', usage })));
  const chat = app.defineAgent({ name: 'chat', model, limits: { session: { tokens: 5 } } });
  expect(await chat.runText('a', { sessionId: 's', throwOnError: false })).toMatchObject({
    finishReason: 'failed',
  });
  expect(await chat.runText('a', { sessionId: 's', throwOnError: false })).toMatchObject({
    finishReason: 'failed',
  });
  expect(model.requests).toHaveLength(1);
  for (let n = 0; n < 2; n++) {
    const { snapshotId } = await chat.run({ ...say('c'), detach: true }, { sessionId: 'd' });
    expect(await chat.wait(must(snapshotId))).toMatchObject({ status: 'failed' });
  }
  expect(model.requests).toHaveLength(2);
});

test('S220: what a detached run has used counts when it is aborted', async () => {
  await using app = openTools();
  const gate = createGate();
  const model = scriptedModel([call, gate.giving('late'), { text: 'ok', usage }, 'never']);
  const limits = { session: { tokens: 15 } };
  const chat = app.defineAgent({ name: 'chat', model, tools: ['look'], limits });
  const { snapshotId = '' } = await chat.run({ ...say('a'), detach: true }, { sessionId: 's' });
  await gate.reached;
  expect(await chat.abort(snapshotId)).toBe('aborted');
  await eventually(async () => {
    expect(await chat.getSnapshot({ snapshotId })).toMatchObject({ usage: { totalTokens: 10 } });
  });
  expect(await chat.runText('b', { sessionId: 's', throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { details: { limit: 'session.tokens', used: 20, most: 15 } },
  });
  expect(model.requests).toHaveLength(3);
});

test('S220: within a turn, too, the model is not called again once the tokens are used up', async () => {
  await using app = openTools();
  const model = scriptedModel([call, call, 'never']);
  const chat = app.defineAgent({
    name: 'chat',
    model,
    tools: ['look'],
    limits: { session: { tokens: 20 } },
  });
  expect(await chat.runText('a', { sessionId: 's', throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { details: { limit: 'session.tokens', used: 20, most: 20 } },
    usage: { totalTokens: 20 },
  });
  expect(model.requests).toHaveLength(2);
  expect(await chat.runText('b', { sessionId: 's', throwOnError: false })).toMatchObject({
    finishReason: 'failed',
  });
  expect(model.requests).toHaveLength(2);
  const ofTurn = scriptedModel([call, call, 'never']);
  const limits = { turn: { tokens: 20 } };
  const one = app.defineAgent({ name: 'one', model: ofTurn, tools: ['look'], limits });
  expect(await one.runText('a', { throwOnError: false })).toMatchObject({
    error: { details: { limit: 'turn.tokens' } },
  });
  expect(ofTurn.requests).toHaveLength(2);
});

test('S200 a custom state or the name of an artifact that is too long is refused, and says so', async () => {
  await using app = openApp();
  let size = 100;
  const agent = app.defineCustomAgent(
    { name: 'grow', initialState: { text: '' }, limits: { session: { customLength: 1_000 } } },
    (session) =>
      session.run(async () => {
        session.updateCustom((draft) => {
          (draft as { text: string }).text = 'x'.repeat(size);
        });
      }),
  );
  const first = await agent.runText('a');
  expect(first.finishReason).toBe('stop');
  size = 2_000;
  const second = await agent.runText('b', { sessionId: first.sessionId, throwOnError: false });
  expect(second).toMatchObject({
    finishReason: 'failed',
    snapshotId: first.snapshotId,
    error: { status: 'RESOURCE_EXHAUSTED', message: expect.stringContaining('customLength') },
  });
  const named = app.defineCustomAgent({ name: 'named' }, (session) =>
    session.run(async () => {
      session.addArtifacts({ name: 'n'.repeat(1_025), parts: [{ text: 'x' }] });
    }),
  );
  expect(await named.runText('a', { throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { status: 'INVALID_ARGUMENT', message: expect.stringContaining('name of an artifact') },
  });
});

test.each([
  [undefined, 16],
  [2, 2],
])(
  'S201 with a toolConcurrency of %s at most %i tools of an answer run at once',
  async (toolConcurrency, expected) => {
    await using app = openApp();
    let active = 0;
    let most = 0;
    app.defineTool({ name: 'work', description: 'Works.' }, async () => {
      most = Math.max(most, ++active);
      await new Promise((resolve) => setImmediate(resolve));
      active--;
      return 'done';
    });
    const toolCalls = Array.from({ length: 40 }, (_, at) => ({ name: 'work', ref: `r${at}` }));
    const chat = app.defineAgent({
      name: 'chat',
      tools: ['work'],
      model: scriptedModel([{ toolCalls }, 'done']),
      ...(toolConcurrency !== undefined && { limits: { turn: { toolConcurrency } } }),
    });
    expect(await chat.runText('go')).toMatchObject({ finishReason: 'stop' });
    expect(most).toBe(expected);
  },
);

test('S383 a sub-agent calls no model once the turn, session or owner that it works for has used up a budget', async () => {
  const spent = { tokens: 20 };
  for (const limits of [{ turn: spent }, { session: spent }, { owner: spent }]) {
    await using app = openTools();
    const inner = scriptedModel(Array.from({ length: 9 }, () => call));
    const helper = app.defineAgent({ name: 'helper', model: inner, tools: ['look'] });
    const model = scriptedModel([
      { toolCalls: [{ name: 'helper', input: { message: 'go' } }], usage },
    ]);
    const chat = app.defineAgent({ name: 'chat', model, tools: [agentTool(helper)], limits });
    expect(await chat.runText('a', { throwOnError: false })).toMatchObject({
      finishReason: 'failed',
      error: { status: 'RESOURCE_EXHAUSTED' },
      usage: { totalTokens: 20 },
    });
    // 10 tokens each: two calls fit.
    expect(model.requests.length + inner.requests.length).toBe(2);
  }
});

test('S383 budgets in money count what the price function says, over agents and sessions of an owner', async () => {
  await using app = openApp({ price: (_, { totalTokens = 0 }) => ({ USD: totalTokens * 100 }) });
  const script = Array.from({ length: 9 }, () => ({ text: 'ok', usage }));
  const [model, other] = [scriptedModel(script), scriptedModel(script, { name: 'other' })];
  const limits = { owner: { cost: { USD: 2_000 }, per: 'month' as const } };
  const chat = app.defineAgent({ name: 'chat', model, limits });
  const free = app.defineAgent({ name: 'free', model: other });
  const { usage: used } = await chat.runText('a', { owner: 'ann' });
  expect(used).toMatchObject({ totalTokens: 10, cost: { USD: 1_000 } });
  await free.runText('a', { owner: 'ann' });
  expect(await chat.runText('b', { owner: 'ann', throwOnError: false })).toMatchObject({
    error: {
      status: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('0.002 of 0.002 USD'),
      details: { limit: 'owner.cost', currency: 'USD', used: 2_000, most: 2_000 },
    },
  });
  expect(await chat.runText('b', { owner: 'bob' })).toMatchObject({ finishReason: 'stop' });
  expect(
    await chat.getSnapshot(
      { sessionId: (await chat.runText('c', { owner: 'cy' })).sessionId },
      { owner: 'cy' },
    ),
  ).toMatchObject({
    usage: { cost: { USD: 1_000 } },
  });
});

test('S384 a model without a price is not called under a budget in money, and a price must be an amount', async () => {
  let cost: Record<string, number> | undefined;
  await using app = openApp({ price: () => cost });
  const model = scriptedModel([
    { text: 'ok', usage },
    { text: 'ok', usage },
  ]);
  const limits = { session: { cost: { EUR: 1_000 } } };
  const chat = app.defineAgent({ name: 'chat', model, limits });
  for (const given of [undefined, { USD: 1 }]) {
    cost = given;
    expect(await chat.runText('a', { throwOnError: false })).toMatchObject({
      error: {
        status: 'FAILED_PRECONDITION',
        message: expect.stringContaining("so the agent's cost limit cannot be enforced."),
        details: { model: 'scripted', currency: 'EUR' },
      },
    });
  }
  expect(model.requests).toHaveLength(0);
  cost = { EUR: 0.5 };
  expect(await chat.runText('a', { throwOnError: false })).toMatchObject({
    error: {
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(
        'The result of `price` for model "scripted" is not an amount of money. Pass integer micro-units',
      ),
    },
  });
  expect(() => app.defineAgent({ name: 'x', store: false, limits })).toThrow(
    'no store that records',
  );
  expect(() => app.defineAgent({ name: 'y', limits: { owner: { cost: { USD: -1 } } } })).toThrow(
    /^`limits.owner.cost` of agent "y" is not an amount of money\./,
  );
});

test('the cost of a turn is a limit whose error says which, how much and how much at most', async () => {
  const priced = scriptedModel([
    { toolCalls: [{ name: 'noop', input: {} }], usage: { inputTokens: 10, totalTokens: 10 } },
    'never asked',
  ]);
  const app = waymark({ store: memoryStore(), price: () => ({ USD: 9_000 }), onError: () => {} });
  const noop = app.defineTool({ name: 'noop', description: 'Does nothing' }, () => 'ok');
  const agent = app.defineAgent({
    name: 'dear',
    model: priced,
    tools: [noop],
    limits: { turn: { cost: { USD: 8_000 } } },
  });
  const { error } = await agent.run('go', { throwOnError: false });
  expect(error).toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    message: expect.stringContaining('`limits.turn.cost`'),
    details: { limit: 'turn.cost', currency: 'USD', used: 9_000, most: 8_000 },
  });
  expect(priced.requests).toHaveLength(1);
});

test('the limits of a generate call name themselves in the same way', async () => {
  const usage = { inputTokens: 10, totalTokens: 10 };
  const model = () => scriptedModel([{ toolCalls: [{ name: 'noop', input: {} }], usage }, 'no']);
  const app = waymark({ price: () => ({ USD: 9_000 }) });
  const noop = app.defineTool({ name: 'noop', description: 'Does nothing' }, () => 'ok');
  const failed = async (limits: object) =>
    await app.generate({ model: model(), prompt: 'x', tools: [noop], limits }).catch((e) => e);
  const amounts = { currency: 'USD', used: 9_000, most: 8_000 };
  expect(await failed({ cost: { USD: 8_000 } })).toMatchObject({
    message: expect.stringContaining('`limits.cost`'),
    details: { limit: 'cost', ...amounts },
  });
  expect(await failed({ tokens: 5 })).toMatchObject({
    details: { limit: 'tokens', used: 10, most: 5 },
  });
  expect(await failed({ toolCalls: 0 })).toMatchObject({
    details: { limit: 'toolCalls', used: 1, most: 0 },
  });
});
