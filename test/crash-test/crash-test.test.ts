import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { type App, agentTool, memoryStore, type Store, waymark } from 'waymark';
import { type CrashReport, crashTest, formatCrashReport, scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { rightApp, type World, wrongApp } from './mistakes.ts';

const newWorld = (): World => ({ charges: [], mails: [] });
const effectsOf = (world: World) => () => [...world.charges, ...world.mails];
const input = 'Charge order 7';

function pointOf(report: CrashReport, at: string) {
  const found = report.points.find((point) => point.at === at);
  if (found === undefined)
    throw new Error(`No point ${at}: ${report.points.map((each) => each.at)}`);
  return found;
}

test('a crash test reports an effect outside a tool, a tool without idempotency and state in a variable, and nothing else', async () => {
  const world = newWorld();
  const report = await crashTest(() => wrongApp(world), {
    agent: 'desk',
    input,
    effects: effectsOf(world),
  });
  expect(report).toMatchObject({
    kind: 'crash-test',
    agent: 'desk',
    ok: false,
    repeatedEffects: [
      { effect: 'A customer is waiting', where: 'outside a tool' },
      {
        effect: '{"order":7}',
        where: 'tool charge',
        expected: 1,
        actual: 2,
        points: ['after tool charge', 'before store write checkpoint'],
      },
    ],
    lostState: [{ path: '/messages/6/content/0/toolResponse/output', expected: 10, actual: 0 }],
  });
  expect(report.repeatedEffects).toHaveLength(2);
  expect(report.lostState).toHaveLength(1);
  expect(report.lostState[0]?.points).toContain('before tool show_points');
  expect(pointOf(report, 'before store write claim').lost).toEqual([
    'the request, which the client sends again',
  ]);
  expect(pointOf(report, 'after tool charge')).toMatchObject({
    ranAgain: ['model call 1', 'tool charge({"order":7})'],
    ended: 'same',
  });
  expect(pointOf(report, 'before tool show_points').ended).toBe('different');
  // Before and after each of four model calls, three tool calls, and the writes: a claim, three checkpoints and a commit.
  expect(report.points).toHaveLength(2 * (4 + 3 + 5));
  const text = formatCrashReport(report);
  expect(text).toContain('after tool charge ');
  expect(text).toContain(
    '✗ Repeated effect (tool charge): {"order":7} happened 2 times instead of once.',
  );
  expect(text).toContain('24 crash points, 2 repeated effects, 1 changed value, 0 failed turns.');
});

test('an app without the mistakes survives every crash, with effects and without', async () => {
  for (const isMeasured of [true, false]) {
    const world = newWorld();
    const report = await crashTest(() => rightApp(world), {
      agent: 'desk',
      input,
      ...(isMeasured && { effects: effectsOf(world) }),
    });
    expect(report.repeatedEffects).toEqual([]);
    expect(report).toMatchObject({ ok: true, lostState: [], skipped: [] });
    expect(report.points).toHaveLength(24);
    expect(formatCrashReport(report)).toContain('✓ Agent "desk" survives 24 crashes.');
  }
});

test('without effects, calls of a tool that does not use its idempotency key count, and state in a variable differs between runs of one app', async () => {
  const report = await crashTest(wrongApp(newWorld()), { input });
  expect(report.repeatedEffects).toMatchObject([
    { effect: 'tool charge({"order":7})', where: 'tool charge', expected: 1, actual: 2 },
  ]);
  expect(report.lostState).toMatchObject([
    { points: [], advice: expect.stringContaining('a variable') },
  ]);
  const ignored = await crashTest(wrongApp(newWorld()), { input, ignore: ['/messages/6'] });
  expect(ignored.lostState).toEqual([]);
});

test('the call of the documentation works: a model that replies in order gives the same replies to every run', async () => {
  const app = waymark({ store: memoryStore() });
  const refund = app.defineTool(
    { name: 'refund', description: 'Refunds', input: z.object({ order: z.number() }) },
    ({ order }, { idempotencyKey }) => `refunded ${order} ${idempotencyKey}`,
  );
  app.defineAgent({ name: 'desk', tools: [refund] });
  const scripted = scriptedModel([
    { toolCalls: [{ name: 'refund', input: { order: 7 } }] },
    'Done.',
    'This reply belongs to no call of the turn.',
  ]);
  const report = await crashTest(app, { agent: 'desk', input: 'Refund order 7', model: scripted });
  expect(report.repeatedEffects).toEqual([]);
  expect(report.ok).toBe(true);
  expect(pointOf(report, 'after model call 2').ranAgain).toEqual(['model call 2']);
  // Only the first run calls it.
  expect(scripted.requests).toHaveLength(2);
  // The store of the app is not used.
  const store = app.store as Store;
  expect(await store.runs?.listRuns()).toEqual([]);
  expect((await store.timeline?.listSessions({ agent: 'desk' }))?.items).toEqual([]);
});

const noInput = z.object({});

/** An app whose agent calls a tool once. */
function oneTool(run: Parameters<App['defineTool']>[1], options: object = {}): App {
  const model = scriptedModel([{ toolCalls: [{ name: 'act' }] }, 'Done.']);
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  const act = app.defineTool(
    { name: 'act', description: 'Acts', input: noInput, ...options },
    run as never,
  );
  app.defineAgent({ name: 'one', tools: [act as never] });
  return app;
}

test('a checkpoint of a tool runs again only if its process dies before its result is stored', async () => {
  const report = await crashTest(
    oneTool(((
      _: unknown,
      { checkpoint }: { checkpoint(name: string, fn: () => string): unknown },
    ) => checkpoint('charge', () => 'charged')) as never),
    { input },
  );
  expect(report.repeatedEffects).toMatchObject([
    {
      effect: 'tool act({}), checkpoint charge',
      points: ['before store write saveStep'],
    },
  ]);
  expect(pointOf(report, 'after tool act').ranAgain).toEqual(['model call 1', 'tool act({})']);
  const keyed = await crashTest(
    oneTool(((
      _: unknown,
      context: { idempotencyKey: string; checkpoint(name: string, fn: () => string): unknown },
    ) => context.checkpoint('charge', () => `charged ${context.idempotencyKey}`)) as never),
    { input },
  );
  expect(keyed.repeatedEffects).toEqual([]);
});

test('hints of a tool declare that it may run twice, and a call that was refused or waits has no effect', async () => {
  for (const annotations of [{ readOnlyHint: true }, { idempotentHint: true }]) {
    const report = await crashTest(
      oneTool((() => 'done') as never, { metadata: { annotations } }),
      { input },
    );
    expect(report.ok).toBe(true);
  }
  const held = await crashTest(oneTool((() => 'done') as never, { needsApproval: true }), {
    input,
  });
  expect(held.repeatedEffects).toEqual([]);
  const refused = await crashTest(
    oneTool((() => 'done') as never, { input: z.object({ id: z.string() }) }),
    { input },
  );
  expect(refused.repeatedEffects).toEqual([]);
  const destructive = await crashTest(oneTool((() => 'done') as never), { input });
  expect(destructive.repeatedEffects).toHaveLength(1);
});

test('a request outside a tool is an effect, unless it reads or has an idempotency key', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  try {
    const app = waymark({ model: scriptedModel(['Done.']), store: memoryStore() });
    app.defineCustomAgent({ name: 'mailer' }, (session) =>
      session.run(async (_, { snapshotId = '' }) => {
        await fetch(`${url}/customer`);
        await fetch(`${url}/mail?to=ada`, { method: 'POST', body: 'Hello' });
        await fetch(`${url}/charge`, {
          method: 'POST',
          headers: { 'Idempotency-Key': snapshotId },
        });
        await session.step('invoice', () =>
          fetch(`${url}/invoice`, { method: 'POST' }).then(() => 1),
        );
        const { message } = await app.generate({ messages: session.messages });
        session.addMessages(message);
      }),
    );
    const report = await crashTest(app, { input });
    expect(report.repeatedEffects.map(({ effect, where }) => ({ effect, where }))).toEqual([
      { effect: `POST ${url}/mail`, where: 'outside a tool' },
      { effect: `POST ${url}/invoice`, where: 'step invoice' },
    ]);
    // Events are written in between if their timer is due.
    expect(report.repeatedEffects[1]?.points).toContain('before store write saveStep');
    expect(pointOf(report, 'after model call 1').ranAgain).toContain(
      'the handler, outside its steps',
    );
    expect(asked).toContain('POST /mail?to=ada');
    expect(report.lostState).toEqual([]);
  } finally {
    server.close();
  }
});

test('recorded sessions are tested with their approvals, and their tools run only if the caller says so', async () => {
  const paid: string[] = [];
  const make = (): App => {
    const model = scriptedModel({
      patterns: [
        [
          /pay/,
          {
            toolCalls: [
              { name: 'pay', input: { to: 'ada' } },
              { name: 'pay', input: { to: 'bob' } },
            ],
          },
        ],
      ],
      otherwise: 'Hello.',
    });
    const app = waymark({ model, store: memoryStore() });
    const pay = app.defineTool(
      {
        name: 'pay',
        description: 'Pays',
        input: z.object({ to: z.string() }),
        needsApproval: true,
      },
      ({ to }) => {
        paid.push(to);
        return `paid ${to}`;
      },
    );
    app.defineAgent({ name: 'clerk', tools: [pay] });
    return app;
  };
  const app = make();
  const clerk = app.agent('clerk');
  const asked = await clerk.run('pay both');
  await clerk.resume(asked, (request) => request.approve());
  const store = app.store as Store;
  const document = await store.maintenance?.exportSession({ agent: 'clerk' }, asked.sessionId);
  if (document === undefined) throw new Error('The session was not exported.');
  const before = paid.length;
  const recorded = await crashTest(make, { sessions: document });
  expect(recorded).toMatchObject({ ok: true, skipped: [] });
  expect(paid).toHaveLength(before);
  expect(new Set(recorded.points.map(({ turn }) => turn)).size).toBe(2);
  expect(pointOf(recorded, 'after tool pay').ranAgain).toContain('tool pay({"to":"ada"})');
  const live = await crashTest(make, { sessions: document, tools: 'live' });
  expect(live.repeatedEffects.map(({ effect }) => effect).toSorted()).toEqual([
    'tool pay({"to":"ada"})',
    'tool pay({"to":"bob"})',
  ]);
  expect(paid.length).toBeGreaterThan(before);
});

test('a sub-agent continues with its parent, and its tools are tested too', async () => {
  const make = (): App => {
    const model = scriptedModel({
      patterns: [
        [/find/, { toolCalls: [{ name: 'order', input: {} }] }],
        [/.*/, { toolCalls: [{ name: 'buyer', input: { message: 'find and order it' } }] }],
      ],
      otherwise: '',
    });
    const app = waymark({ model, store: memoryStore() });
    const order = app.defineTool({ name: 'order', description: 'Orders' }, () => 'ordered');
    const buyer = app.defineAgent({ name: 'buyer', description: 'Buys', tools: [order] });
    app.defineAgent({ name: 'boss', tools: [agentTool(buyer)] });
    return app;
  };
  const report = await crashTest(make, { agent: 'boss', input: 'I need paper' });
  expect(report.repeatedEffects).toMatchObject([{ effect: 'tool order({})', where: 'tool order' }]);
  expect(report.points.filter(({ ended }) => ended !== 'same')).toEqual([]);
  expect(report.lostState).toEqual([]);
});

test('a crash test refuses what it cannot test', async () => {
  const app = (script: Parameters<typeof scriptedModel>[0], options: object = {}): App => {
    const made = waymark({ model: scriptedModel(script), store: memoryStore(), onError: () => {} });
    const act = made.defineTool({ name: 'act', description: 'Acts' }, () => 'done');
    made.defineAgent({ name: 'one', tools: [act], ...options });
    return made;
  };
  await expect(crashTest(app(['Hi.']), {})).rejects.toThrow(
    'either an `input` or recorded `sessions`',
  );
  await expect(crashTest(app(['Hi.']), { input, sessions: 'x' })).rejects.toThrow('either');
  await expect(crashTest(app(['Hi.']), { input, agent: 'two' })).rejects.toThrow('No agent "two"');
  await expect(crashTest(app(['Hi.']), { input, inputs: 1 } as never)).rejects.toThrow(
    'Did you mean "input"',
  );
  await expect(crashTest(app(['Hi.'], { store: false }), { input })).rejects.toThrow(
    'has no store',
  );
  // A script that runs out.
  await expect(crashTest(app([{ toolCalls: [{ name: 'act' }] }]), { input })).rejects.toThrow(
    /fails without a crash: The script of model "scripted" has only 1 reply/,
  );
  // An agent that never ends.
  await expect(
    crashTest(app([{ text: 'Well', hang: true }]), { input, timeout: 300 }),
  ).rejects.toThrow(`The turn "${input}" did not end within 300 ms without a crash.`);
  const stop = AbortSignal.abort();
  await expect(crashTest(app(['Hi.']), { input, signal: stop })).rejects.toThrow('aborted');
});

test('a turn that does not end after a crash is stuck, and one that fails is failed', async () => {
  let runs = 0;
  const reset = () => {
    runs = 0;
  };
  const again = (second: () => unknown) =>
    oneTool((() => (++runs > 1 ? second() : 'done')) as never, {
      metadata: { annotations: { readOnlyHint: true } },
    });
  const hang = await crashTest(
    again(() => new Promise(() => {})),
    { input, reset, timeout: 500 },
  );
  expect(pointOf(hang, 'after tool act').ended).toBe('stuck');
  expect(hang.points.filter(({ ended }) => ended === 'stuck')).toHaveLength(2);
  expect(formatCrashReport(hang)).toContain('2 failed turns');
  const app = waymark({ model: scriptedModel(['Done.']), store: memoryStore(), onError: () => {} });
  app.defineCustomAgent({ name: 'once' }, (session) =>
    session.run(async () => {
      if (++runs > 1) throw new Error('It was begun before.');
      const { message } = await app.generate({ messages: session.messages });
      session.addMessages(message);
    }),
  );
  const failed = await crashTest(app, { input, reset });
  expect(pointOf(failed, 'after model call 1')).toMatchObject({
    ended: 'failed',
    error: 'It was begun before.',
    lost: [],
  });
  expect(failed).toMatchObject({ ok: false, lostState: [] });
});
