import { afterEach, expect, test } from 'vitest';
import { type App, type AppOptions, memoryStore, tool, waymark } from 'waymark';
import { type McpSource, type McpUrl, mcp } from 'waymark/mcp';
import { type Log, serve } from 'waymark/server';
import { type ScriptStep, scriptedModel } from 'waymark/testing';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { movableClock } from '../support/movable-clock.ts';
import { rawServer } from './support/raw.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Expert {
  readonly app: App;
  /** The methods that were called. */
  readonly methods: string[];
  source(options?: Partial<McpUrl>): McpSource;
}

/** A Waymark server with the agent `expert` as an MCP tool. */
async function expertServer(steps: readonly ScriptStep[]): Promise<Expert> {
  const app = waymark({ model: scriptedModel(steps), store: memoryStore(), onError: () => {} });
  const pay = tool(
    { name: 'pay', description: 'Pays.', input: { type: 'object', properties: {} } },
    (_, { interrupt, resumed }) => (resumed === undefined ? interrupt() : 'paid'),
  );
  app.defineAgent({ name: 'expert', tools: [pay] });
  const methods: string[] = [];
  const log: Log = (entry) => {
    if (entry.rpc !== undefined) methods.push(String(entry.rpc));
  };
  const server = await serve(app, { port: 0, grace: 0, mcp: true, log });
  closing.push(async () => {
    await server.close();
    await app.close({ grace: 0 });
  });
  return {
    app,
    methods,
    source: (options) => mcp('remote', { url: `${server.url}/mcp`, tasks: true, ...options }),
  };
}

const repeat: ScriptStep = ({ messages }) => JSON.stringify(messages.at(-1)?.content);

/** An app whose agent `lead` calls a tool, and then says what it got. */
function leadOf(source: McpSource, options: AppOptions = {}, name = 'remote_expert'): App {
  const call = { toolCalls: [{ name, input: { message: 'Do it' } }] };
  const app = waymark({
    model: scriptedModel({ patterns: [[/^Ask/, call]], otherwise: repeat }),
    store: memoryStore(),
    onError: () => {},
    ...options,
  });
  app.defineAgent({ name: 'lead', tools: [source] });
  closing.push(() => app.close({ grace: 0 }));
  return app;
}

const count = (expert: Expert, method: string): number =>
  expert.methods.filter((each) => each === method).length;

test('S515 a call runs as a task, and its result is the result of the tool', async () => {
  const expert = await expertServer([{ text: 'forty-two' }]);
  const { text } = await leadOf(expert.source()).agent('lead').run('Ask');
  expect(text).toContain('forty-two');
  expect([count(expert, 'tools/call'), count(expert, 'tasks/get')]).toEqual([
    1,
    expect.any(Number),
  ]);
  expect(count(expert, 'tasks/get')).toBeGreaterThan(0);
});

test('S515 without the option the call is none', async () => {
  const expert = await expertServer([{ text: 'forty-two' }]);
  const lead = leadOf(expert.source({ tasks: false })).agent('lead');
  expect((await lead.run('Ask')).text).toContain('forty-two');
  expect(count(expert, 'tasks/get')).toBe(0);
});

test('S516 a question of a task interrupts the tool, and the answer continues the same task', async () => {
  const expert = await expertServer([{ toolCalls: [{ name: 'pay' }] }, { text: 'Done: paid.' }]);
  const lead = leadOf(expert.source()).agent('lead');
  const asked = await lead.run('Ask');
  const [question] = asked.interrupts;
  expect(question?.metadata).toMatchObject({
    schema: { properties: { approved: { type: 'boolean' } } },
    elicitation: { taskId: expect.any(String) },
  });
  const answer = { resumed: { action: 'accept', content: { approved: true } } };
  const done = await lead.resume(asked, question?.approve(answer) ?? []);
  expect(done.text).toContain('Done: paid.');
  expect([count(expert, 'tools/call'), count(expert, 'tasks/update')]).toEqual([1, 1]);
  expect((await expert.app.agent('expert').listSessions()).items).toHaveLength(1);
});

test('S515 stopping the turn cancels the task', async () => {
  const expert = await expertServer([{ chunks: ['It hangs'], hang: true }]);
  const lead = leadOf(expert.source()).agent('lead');
  const stop = new AbortController();
  const turn = lead.run('Ask', { signal: stop.signal });
  await expect.poll(() => count(expert, 'tasks/get')).toBeGreaterThan(0);
  stop.abort();
  await turn;
  const remote = expert.app.agent('expert');
  const [run] = (await remote.listRuns()).items;
  await expect
    .poll(async () => (await remote.getSnapshot(run?.snapshotId ?? ''))?.status)
    .toBe('aborted');
});

test('S515 a process that takes over the turn waits for the task instead of calling again', async () => {
  const expert = await expertServer([{ chunks: ['It ', 'hangs'], hang: true }]);
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const dying = leadOf(expert.source(), { clock, store: line, claimTtl: 60_000 });
  const run = await dying.agent('lead').start('Ask');
  await expect.poll(() => count(expert, 'tasks/get')).toBeGreaterThan(0);
  line.cut();
  closing.push(() => line.heal());
  const other = leadOf(expert.source(), { clock, store, claimTtl: 60_000 });
  advance(120_000);
  const before = count(expert, 'tasks/get');
  await other.engine.recover();
  await expect.poll(() => count(expert, 'tasks/get')).toBeGreaterThan(before + 1);
  const remote = expert.app.agent('expert');
  const [task] = (await remote.listRuns()).items;
  await remote.abort(task?.snapshotId ?? '');
  const { text } = await other.agent('lead').attach(run.id).wait();
  expect(text).toContain('ended as cancelled');
  expect([count(expert, 'tools/call'), count(expert, 'tasks/cancel')]).toEqual([1, 0]);
});

test('S515 a task that fails is an error that the model can read', async () => {
  const expert = await expertServer([{ error: new Error('secret') }]);
  const { text } = await leadOf(expert.source()).agent('lead').run('Ask');
  expect(text).toContain('ended as failed');
  expect(text).not.toContain('secret');
});

test('S515 tools of a server of 2025 run as tasks if they must, or if the option says so', async () => {
  for (const [name, options] of [
    ['required', {}],
    ['optional', { tasks: true }],
  ] as const) {
    const lead = leadOf(rawServer('raw', 'tasks', options), {}, `raw_${name}`).agent('lead');
    const progress: unknown[] = [];
    const turn = lead.stream('Ask');
    for await (const { modelChunk } of turn.stream) {
      for (const part of modelChunk?.content ?? []) {
        if ('toolResponse' in part && part.metadata?.partial) {
          progress.push(part.toolResponse.output);
        }
      }
    }
    expect((await turn.output).text).toContain('result of task-1 after 2');
    expect(progress).toContainEqual({ message: 'Working' });
  }
});

test('S515 a task that is lost, fails or is not valid is an error that the model can read', async () => {
  const source = rawServer('raw', 'tasks');
  for (const [name, said] of [
    ['lost', 'refused the task'],
    ['nonsense', 'not valid MCP'],
    ['broken', 'not valid MCP'],
    ['failing', 'It failed'],
  ]) {
    const lead = leadOf(source, {}, `raw_${name}`).agent('lead');
    expect((await lead.run('Ask')).text).toContain(said);
  }
});
