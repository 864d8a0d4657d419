import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import type { AppOptions } from '../../src/app-options.ts';
import { createClient } from '../../src/client/index.ts';
import type { JsonObject } from '../../src/core/json/json.ts';
import type { Clock } from '../../src/core/time.ts';
import type { Middleware } from '../../src/generate/middleware/middleware.ts';
import { toolApproval } from '../../src/generate/middleware/tool-approval.ts';
import type { InterruptDeadline } from '../../src/generate/tool/tool-context.ts';
import { replay } from '../../src/replay/index.ts';
import { rerun } from '../../src/replay/rerun.ts';
import { serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { backupSqlite, restoreSqlite, sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { must, openApp, refused, type TestApp } from './support/kit.ts';

const claimTtl = 60_000;
const hour = 3_600_000;

/** An agent whose tool needs an approval within an hour. `paid` has the calls that ran. */
function define(
  app: TestApp,
  deadline: Omit<InterruptDeadline, 'expiresAt'> = { expiresIn: hour },
) {
  const paid: unknown[] = [];
  const pay = app.defineTool({ name: 'pay', description: 'Pays.' }, (_, { context }) => {
    paid.push(context);
    return 'paid';
  });
  const model = scriptedModel({
    patterns: [[/pay/, { toolCalls: [{ name: 'pay', input: {} }] }]],
    otherwise: 'ok',
  });
  const use = [toolApproval(['pay'], deadline)];
  return { desk: app.defineAgent({ name: 'desk', model, tools: [pay], use }), paid, model };
}

let postgres: TestPostgres;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await postgres.stop();
});

const stores: Record<string, (folder: string, clock: Clock) => Store> = {
  memory: (_, clock) => memoryStore({ clock }),
  sqlite: (folder, clock) => sqliteStore(join(folder, 'test.db'), { clock }),
  file: (folder, clock) => fileStore(join(folder, 'files'), { clock }),
  postgres: () =>
    postgresStore({
      connectionString: postgres.connectionString,
      schema: schemas.take(),
      max: 4,
    }),
};

describe.each(Object.entries(stores))('with the %s store', (name, open) => {
  // The clock of a database cannot be moved: there the deadline is over at once.
  const expiresIn = name === 'postgres' ? 1 : hour;

  async function play(
    work: (setup: {
      start(options?: AppOptions): TestApp;
      store: Store;
      expire(): void;
    }) => Promise<void>,
  ): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-deadlines-'));
    const { clock, advance } = movableClock();
    const store = open(folder, clock);
    const start = (options: AppOptions = {}): TestApp =>
      openApp({ store, claimTtl, ...(name !== 'postgres' && { clock }), ...options });
    try {
      await work({ start, store, expire: () => advance(hour) });
    } finally {
      await store.close?.();
      await rm(folder, { recursive: true });
    }
  }

  test('S495 S496 S497 a late approval is refused, and any process declines for the person who did not answer', async () => {
    await play(async ({ start, store, expire }) => {
      await using first = start({ work: false });
      const there = define(first, { expiresIn });
      const context = { tenant: 't1' };
      const asked = await there.desk.run('pay', { sessionId: 'a', owner: 'ann', context });
      const [request] = asked.interrupts;
      expect(Date.parse(must(request?.expiresAt))).toBeGreaterThan(0);
      const { items } = await there.desk.listInterrupts({ owner: 'ann' });
      expect(items[0]?.interrupts[0]?.expiresAt).toBe(request?.expiresAt);
      expire();
      await eventually(async () => {
        const late = there.desk.resume(asked, (each) => each.approve(), { owner: 'ann' });
        const error = await refused(late, 'FAILED_PRECONDITION');
        expect(error.message).toContain('expired at');
      });
      await using second = start({ work: false });
      const { desk, paid, model } = define(second, { expiresIn });
      await eventually(async () => {
        await second.engine.recover();
        const session = await desk.getSession('a', { owner: 'ann' });
        const [, , results, answer] = session?.state?.messages ?? [];
        expect(answer?.role).toBe('model');
        expect(results?.metadata).toEqual({ answered: { at: expect.any(String), expired: true } });
        expect(results?.content).toMatchObject([
          {
            toolResponse: { output: 'Declined: there was no answer before the deadline.' },
            metadata: { error: { status: 'DEADLINE_EXCEEDED', reason: 'expired' } },
          },
        ]);
      });
      expect(paid).toEqual([]);
      expect(model.requests).toHaveLength(1);
      await eventually(async () => expect(await store.runs?.listRuns()).toEqual([]));
      expect((await desk.listInterrupts({ owner: 'ann' })).items).toEqual([]);
      expect(second.errors).toEqual([]);
    });
  });

  test('S498 with `fail` the turn fails once, and a message continues the session', async () => {
    await play(async ({ start, store, expire }) => {
      await using app = start();
      const { desk, model } = define(app, { expiresIn, onExpiry: 'fail' });
      await desk.run('pay', { sessionId: 'a' });
      expire();
      await eventually(async () => {
        await app.engine.recover();
        const { items } = await desk.listSnapshots('a');
        expect(items.at(-1)).toMatchObject({
          status: 'failed',
          error: { status: 'DEADLINE_EXCEEDED' },
        });
      });
      await eventually(async () => expect(await store.runs?.listRuns()).toEqual([]));
      await app.engine.recover();
      expect((await desk.listSnapshots('a')).items).toHaveLength(2);
      expect(model.requests).toHaveLength(1);
      expect((await desk.run('never mind', { sessionId: 'a' })).finishReason).toBe('stop');
    });
  });

  test('S496 nothing happens at the deadline of an interrupt that was answered', async () => {
    if (name === 'postgres') return;
    await play(async ({ start, store, expire }) => {
      await using app = start();
      const { desk, paid } = define(app);
      const asked = await desk.run('pay', { sessionId: 'a' });
      await desk.resume(asked, (each) => each.approve());
      expire();
      await app.engine.recover();
      await eventually(async () => expect(await store.runs?.listRuns()).toEqual([]));
      expect((await desk.listSnapshots('a')).items).toHaveLength(2);
      expect(paid).toHaveLength(1);
    });
  });
});

describe.each(['memory', 'sqlite'])('in the %s store', (name) => {
  test('S497 an edit of the interrupted snapshot keeps its deadline', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-deadlines-'));
    const { clock, advance } = movableClock();
    const store = must(stores[name])(folder, clock);
    try {
      await using app = openApp({ store, claimTtl, clock, work: false });
      const { desk } = define(app);
      const asked = await desk.run('pay', { sessionId: 'a' });
      const edited = await desk.edit(must(asked.snapshotId), { custom: { edits: 1 } });
      await desk.edit(edited, { custom: { edits: 2 } });
      advance(hour);
      await eventually(async () => {
        await app.engine.recover();
        const { state } = must(await desk.getSession('a'));
        expect(state?.messages?.at(-2)?.metadata).toMatchObject({ answered: { expired: true } });
        expect(state?.custom).toEqual({ edits: 2 });
      });
      await eventually(async () => expect(await store.runs?.listRuns()).toEqual([]));
      expect(app.errors).toEqual([]);
    } finally {
      await store.close?.();
      await rm(folder, { recursive: true });
    }
  });
});

test('S497 interrupts of a restored backup wait for the rest of their time', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-deadlines-'));
  const { clock, advance } = movableClock();
  const path = (file: string): string => join(folder, file);
  const original = sqliteStore(path('test.db'), { clock });
  await using before = openApp({ store: original, claimTtl, clock, work: false });
  await define(before).desk.run('pay', { sessionId: 'a' });
  await backupSqlite(path('test.db'), path('copy'));
  await restoreSqlite(path('copy'), path('restored.db'));
  const store = sqliteStore(path('restored.db'), { clock });
  try {
    await using app = openApp({ store, claimTtl, clock, work: false });
    const { desk } = define(app);
    expect(await app.engine.recover()).toBe(1);
    await eventually(async () =>
      expect(await store.runs?.listRuns()).toMatchObject([{ worker: 'deadline', expired: false }]),
    );
    advance(hour / 2);
    expect(await app.engine.recover()).toBe(0);
    expect((await desk.listInterrupts()).items).toHaveLength(1);
    advance(hour / 2);
    await eventually(async () => {
      await app.engine.recover();
      expect(await store.runs?.listRuns()).toEqual([]);
    });
    expect((await desk.listInterrupts()).items).toEqual([]);
    expect(app.errors).toEqual([]);
  } finally {
    await store.close?.();
    await original.close?.();
    await rm(folder, { recursive: true });
  }
});

test('S497 a deadline whose interrupt can no longer be declined is reported once', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  await using app = openApp({ store, claimTtl, clock, work: false });
  const { desk } = define(app);
  const asked = await desk.run('pay', { sessionId: 'a' });
  await desk.resume(asked, (each) => each.approve());
  await desk.restore(must(asked.snapshotId));
  advance(hour);
  expect(await app.engine.recover()).toBe(1);
  await eventually(async () => expect(await store.runs?.listRuns()).toEqual([]));
  await eventually(() => expect(app.errors).toMatchObject([{ status: 'FAILED_PRECONDITION' }]));
});

test('S496 an answer that was accepted in time reaches a sub-agent after the deadline', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), claimTtl, clock, work: false });
  const { desk, paid } = define(app);
  const slow: Middleware = {
    name: 'slow',
    tool(step, next) {
      if (step.context.resumed !== undefined) advance(hour);
      return next(step);
    },
  };
  const boss = app.defineAgent({
    name: 'boss',
    model: scriptedModel([{ toolCalls: [{ name: 'desk', input: { message: 'pay' } }] }, 'bye']),
    tools: [agentTool(desk)],
    use: [slow],
  });
  const asked = await boss.run('go', { sessionId: 'a' });
  const { requests } = must(asked.interrupts[0]).metadata as { requests: JsonObject[] };
  const restart = requests.map((part) => ({ ...part, metadata: { resumed: true } }));
  await boss.resume(asked, (each) => each.approve({ resumed: { restart } }));
  expect(paid).toHaveLength(1);
});

test('S496 S590 after the deadline, an interrupt of a sub-agent can only be declined', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), claimTtl, clock, work: false });
  const { desk, paid } = define(app);
  const boss = app.defineAgent({
    name: 'boss',
    model: scriptedModel([{ toolCalls: [{ name: 'desk', input: { message: 'pay' } }] }, 'bye']),
    tools: [agentTool(desk)],
  });
  const asked = await boss.run('go', { sessionId: 'a' });
  advance(hour);
  const late = { status: 'FAILED_PRECONDITION' };
  const declined = [{ toolResponse: { name: 'pay' }, metadata: { declined: true } }];
  for (const resumed of [true, {}, { respond: declined }]) {
    await expect(boss.resume(asked, (each) => each.approve({ resumed }))).rejects.toMatchObject(
      late,
    );
  }
  const [inner] = must(asked.interrupts[0]).interrupts;
  // What declines for a sub-agent is a value like any other for its tool, which would run.
  await expect(
    boss.resume(asked, (each) =>
      each.resume((request) =>
        request.approve({ resumed: { respond: [must(inner).decline()] } as unknown as JsonObject }),
      ),
    ),
  ).rejects.toMatchObject(late);
  expect(await boss.resume(asked, (each) => each.decline())).toMatchObject({ text: 'bye' });
  expect(paid).toEqual([]);
});

test('S415 S497 a client cannot mark its answer as expired', async () => {
  await using app = openApp();
  const { desk } = define(app);
  const asked = await desk.run('pay', { sessionId: 'a', owner: 'ann' });
  const { name, ref } = must(asked.interrupts[0]).request.toolRequest;
  const respond = [
    { toolResponse: { name, ...(ref && { ref }) }, metadata: { declined: true, expired: true } },
  ];
  await desk.run({ resume: { respond } }, { sessionId: 'a', owner: 'ann', remote: true });
  const { state } = must(await desk.getSession('a', { owner: 'ann' }));
  expect(state?.messages?.at(-2)).toMatchObject({
    metadata: { answered: { by: 'ann' } },
    content: [{ metadata: { error: { reason: 'declined' } } }],
  });
});

test('S423 S491 turns that answered an interrupt with a deadline can be replayed after it', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  await using app = openApp({ store, claimTtl, clock, work: false });
  const { desk } = define(app);
  const asked = await desk.run('pay', { sessionId: 'approved' });
  const paid = await desk.resume(asked, (each) => each.approve());
  await desk.run('pay', { sessionId: 'declined' });
  advance(hour);
  await eventually(async () => {
    await app.engine.recover();
    expect(await store.runs?.listRuns()).toEqual([]);
    expect((await desk.listInterrupts()).items).toEqual([]);
  });
  const report = await replay(app, { sessions: ['approved', 'declined'] });
  expect(report.skipped).toEqual([]);
  expect(report.turns.map(({ divergences }) => divergences)).toEqual([[], [], [], []]);
  const again = { snapshotId: must(paid.snapshotId), scope: 'turn', tools: 'recorded' } as const;
  expect((await rerun(desk, again)).stopped).toBeUndefined();
});

test('S491 a turn that runs again arms no deadline', async () => {
  const { clock } = movableClock();
  const store = memoryStore({ clock });
  await using app = openApp({ store, claimTtl, clock, work: false });
  const ask = app.defineTool({ name: 'ask', description: 'Asks twice.' }, (_, { interrupt }) =>
    interrupt({}, { expiresIn: hour }),
  );
  const model = scriptedModel([{ toolCalls: [{ name: 'ask', input: {} }] }]);
  const agent = app.defineAgent({ name: 'asks', model, tools: [ask] });
  const first = await agent.run('go', { sessionId: 'a' });
  const second = await agent.resume(first, (each) => each.approve());
  const runs = await store.runs?.listRuns();
  expect(runs).toHaveLength(2);
  for (const tools of ['recorded', 'live'] as const) {
    const again = await rerun(agent, {
      snapshotId: must(second.snapshotId),
      scope: 'turn',
      tools,
    });
    expect(again.stopped).toBeUndefined();
    expect(await store.runs?.listRuns()).toEqual(runs);
  }
});

test('S495 S496 requests that are answered together wait for the last of them; a declined one may be late', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), claimTtl, clock });
  const ask = (name: string, expiresIn?: number) =>
    app.defineInterrupt({ name, description: 'Asks.', ...(expiresIn && { expiresIn }) });
  const script = [{ toolCalls: [{ name: 'soon' }, { name: 'later' }] }, 'done'];
  const tools = [ask('soon', hour), ask('later')];
  const agent = app.defineAgent({ name: 'asks', model: scriptedModel(script), tools });
  const asked = await agent.run('go', { sessionId: 'a' });
  advance(2 * hour);
  expect(await app.engine.recover()).toBe(0);
  const answers = asked.interrupts.map((each) =>
    each.toolName === 'soon' ? each.decline() : each.respond('yes'),
  );
  await refused(
    agent.resume(asked, (each) => each.respond('yes')),
    'FAILED_PRECONDITION',
  );
  expect((await agent.resume(asked, answers)).finishReason).toBe('stop');
});

test('S497 the deadline of a sub-agent is that of the call that waits for it', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), claimTtl, clock });
  const { desk } = define(app);
  const boss = app.defineAgent({
    name: 'boss',
    model: scriptedModel([{ toolCalls: [{ name: 'desk', input: { message: 'pay' } }] }, 'bye']),
    tools: [agentTool(desk)],
  });
  const asked = await boss.run('go', { sessionId: 'a' });
  expect(asked.interrupts[0]?.expiresAt).toBeDefined();
  advance(hour);
  await eventually(async () => {
    await app.engine.recover();
    const session = await boss.getSession('a');
    expect(session?.state?.messages?.at(-1)?.content).toEqual([{ text: 'bye' }]);
  });
  expect(app.errors).toEqual([]);
});

test('S495 S496 clients see the deadline, and are told that they are late', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), claimTtl, clock, work: false });
  define(app);
  const server = await serve(app, { port: 0, log: () => {} });
  try {
    const desk = createClient({ url: server.url }).agent('desk');
    const asked = await desk.run('pay');
    expect(Date.parse(must(asked.interrupts[0]?.expiresAt))).toBeLessThanOrEqual(
      clock.now() + hour,
    );
    advance(hour);
    const late = desk.resume(asked, (each) => each.approve());
    const { message } = await refused(late, 'FAILED_PRECONDITION');
    expect(message).toContain('Decline it, or send another message.');
    expect((await desk.resume(asked, (each) => each.decline())).finishReason).toBe('stop');
  } finally {
    await server.close();
  }
});

test('S495 a deadline must be a time', async () => {
  await using app = openApp();
  const { desk } = define(app, { expiresIn: Number.NaN });
  // The tool has failed, and the model is told so.
  expect((await desk.run('pay')).finishReason).toBe('stop');
  expect(String(app.errors[0])).toContain('positive number of milliseconds');
});
