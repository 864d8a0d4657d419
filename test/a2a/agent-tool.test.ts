import { afterEach, expect, test } from 'vitest';
import { type App, type AppOptions, memoryStore, tool, waymark } from 'waymark';
import { type A2aAgentToolOptions, a2aAgentTool } from 'waymark/a2a';
import { type Log, serve } from 'waymark/server';
import { type ScriptStep, scriptedModel } from 'waymark/testing';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { movableClock } from '../support/movable-clock.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A Waymark server with the agent `expert`, and what was called there. */
async function expertServer(
  steps: readonly ScriptStep[],
  options: Parameters<typeof serve>[1] = {},
): Promise<{ readonly url: string; readonly app: App; readonly methods: string[] }> {
  const app = waymark({ model: scriptedModel(steps), store: memoryStore(), onError: () => {} });
  const pay = tool(
    { name: 'pay', description: 'Pays.', input: { type: 'object', properties: {} } },
    (_, { interrupt, resumed }) => (resumed === undefined ? interrupt() : 'paid'),
  );
  const ask = app.defineInterrupt({ name: 'ask', description: 'Asks.' });
  app.defineAgent({ name: 'expert', tools: [pay, ask] });
  const methods: string[] = [];
  const log: Log = (entry) => {
    if (entry.rpc !== undefined) methods.push(String(entry.rpc));
  };
  const server = await serve(app, { port: 0, grace: 0, a2a: true, ...options, log });
  closing.push(async () => {
    await server.close();
    await app.close({ grace: 0 });
  });
  return { url: `${server.url}/a2a/expert`, app, methods };
}

const callExpert = {
  toolCalls: [{ name: 'expert', input: { message: 'Do it' } }],
};

/** An app whose agent `lead` asks the expert, and then says what it got. */
function leadOf(
  url: string,
  {
    app: given = {},
    ...options
  }: Partial<A2aAgentToolOptions> & { readonly app?: AppOptions } = {},
): App & { readonly errors: string[] } {
  const errors: string[] = [];
  const app = waymark({
    model: scriptedModel({ patterns: [[/^Ask/, callExpert]], otherwise: 'Nothing.' }),
    store: memoryStore(),
    onError: (error) => errors.push(String(error)),
    ...given,
  });
  const expert = a2aAgentTool(url, { name: 'expert', description: 'Knows.', ...options });
  app.defineAgent({ name: 'lead', tools: [expert] });
  closing.push(() => app.close({ grace: 0 }));
  return Object.assign(app, { errors });
}

test('S373 the answer of a remote agent is the result of the tool, and streams on the way', async () => {
  const remote = await expertServer([{ chunks: ['forty', '-', 'two'], chunkDelay: 1 }]);
  const lead = leadOf(remote.url).agent('lead');
  const progress: string[] = [];
  const turn = lead.stream('Ask');
  for await (const { modelChunk } of turn.stream) {
    if (modelChunk?.role !== 'tool') continue;
    for (const part of modelChunk.content) {
      if ('toolResponse' in part && part.metadata?.partial)
        progress.push(String(part.toolResponse.output));
    }
  }
  expect((await turn.output).text).toContain('forty-two');
  expect('forty-two'.startsWith(progress.join('').slice(0, 9))).toBe(true);
});

test('S375 an interrupt travels both ways, under one task', async () => {
  const remote = await expertServer([{ toolCalls: [{ name: 'pay' }] }, { text: 'Done: paid.' }]);
  const lead = leadOf(remote.url).agent('lead');
  const asked = await lead.run('Ask');
  expect(asked.finishReason).toBe('interrupted');
  const [question] = asked.interrupts;
  expect(question?.metadata).toMatchObject({
    message: 'Waits for your answer: pay {}',
    schema: { properties: { approved: { type: 'boolean' } } },
    a2a: { taskId: expect.any(String) },
  });
  const done = await lead.resume(asked, question?.approve() ?? []);
  expect(done.text).toContain('Done: paid.');
  const { items } = await remote.app.agent('expert').listSessions();
  expect(items).toHaveLength(1);
});

test.each([
  ['a text', 'blue', 'blue'],
  ['an object', { answer: 'blue' }, 'blue'],
])('S375 %s answers a question', async (_, resumed, output) => {
  const remote = await expertServer([{ toolCalls: [{ name: 'ask' }] }, { text: 'Thanks.' }]);
  const lead = leadOf(remote.url).agent('lead');
  const asked = await lead.run('Ask');
  await lead.resume(
    asked,
    asked.interrupts.map((each) => each.approve({ resumed })),
  );
  const [session] = (await remote.app.agent('expert').listSessions()).items;
  const { state } = (await remote.app.agent('expert').getSession(session?.sessionId ?? '')) ?? {};
  expect(JSON.stringify(state?.messages)).toContain(`"output":"${output}"`);
});

test('S375 an answer that does not fit asks again', async () => {
  const remote = await expertServer([{ toolCalls: [{ name: 'pay' }] }, { text: 'Done.' }]);
  const lead = leadOf(remote.url).agent('lead');
  const asked = await lead.run('Ask');
  const again = await lead.resume(
    asked,
    asked.interrupts.map((each) => each.approve({ resumed: 'perhaps' })),
  );
  expect(again.finishReason).toBe('interrupted');
  const done = await lead.resume(
    again,
    again.interrupts.map((each) => each.approve()),
  );
  expect(done.text).toContain('Done.');
});

test('S376 stopping the turn cancels the remote task', async () => {
  const remote = await expertServer([{ chunks: ['It hangs'], hang: true }]);
  const lead = leadOf(remote.url).agent('lead');
  const stop = new AbortController();
  const turn = lead.run('Ask', { signal: stop.signal });
  const expert = remote.app.agent('expert');
  await expect.poll(async () => (await expert.listRuns()).items.length).toBe(1);
  const [run] = (await expert.listRuns()).items;
  stop.abort();
  await turn;
  await expect
    .poll(async () => (await expert.getSnapshot(run?.snapshotId ?? ''))?.status)
    .toBe('aborted');
});

test('S374 a process that takes over the turn follows the task instead of starting another one', async () => {
  const remote = await expertServer([{ chunks: ['It ', 'hangs'], hang: true }]);
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const dying = leadOf(remote.url, { app: { clock, store: line, claimTtl: 60_000 } });
  const run = await dying.agent('lead').start('Ask');
  await expect
    .poll(() => remote.methods.filter((each) => each === 'SubscribeToTask').length)
    .toBe(1);
  line.cut();
  closing.push(() => line.heal());
  const other = leadOf(remote.url, { app: { clock, store, claimTtl: 60_000 } });
  advance(120_000);
  await other.engine.recover();
  await expect
    .poll(() => remote.methods.filter((each) => each === 'GetTask').length)
    .toBeGreaterThanOrEqual(2);
  const expert = remote.app.agent('expert');
  const [task] = (await expert.listRuns()).items;
  await expert.abort(task?.snapshotId ?? '');
  const { text } = await other.agent('lead').attach(run.id).wait();
  expect(text).toContain('ended as canceled');
  expect(remote.methods.filter((each) => each === 'SendMessage')).toHaveLength(1);
});

test('a remote agent that fails, refuses or is away is an error that the model can read', async () => {
  const failing = await expertServer([{ error: new Error('secret') }]);
  const failed = await leadOf(failing.url).agent('lead').run('Ask');
  expect(failed.text).toContain('ended as failed');
  expect(failed.text).not.toContain('secret');
  const closed = await expertServer([{ text: 'x' }], { auth: () => undefined });
  const refused = leadOf(closed.url);
  expect((await refused.agent('lead').run('Ask')).text).toContain('refused');
  const away = leadOf('http://127.0.0.1:1/a2a/expert');
  expect((await away.agent('lead').run('Ask')).text).toContain('not available');
});

test('headers go with each request, and to no other host than that of the card', async () => {
  const remote = await expertServer([{ text: 'Hello' }], {
    auth: (request) =>
      request.headers.get('authorization') === 'Bearer t' ? { principal: 'ann' } : undefined,
  });
  const headers = (): Record<string, string> => ({ authorization: 'Bearer t' });
  expect((await leadOf(remote.url, { headers }).agent('lead').run('Ask')).text).toContain('Hello');
  const card = {
    url: 'http://localhost:9/steal',
    preferredTransport: 'JSONRPC',
    capabilities: {},
  };
  const asked: string[] = [];
  const stealing: typeof fetch = async (input) => {
    asked.push(String(input));
    return Response.json(card);
  };
  const lead = leadOf('http://127.0.0.1:9/agent', { headers, fetch: stealing });
  expect((await lead.agent('lead').run('Ask')).text).toContain('not available');
  expect(asked).toEqual(['http://127.0.0.1:9/agent/.well-known/agent-card.json']);
});

test.each([
  ['no JSON', () => new Response('<html>')],
  ['nothing of A2A', () => Response.json({ hello: 1 })],
  ['a redirect', () => Response.redirect('http://127.0.0.1:9/')],
  ['too much', () => new Response('x'.repeat(3000))],
])('a server that answers with %s is not available', async (_, answer) => {
  const lead = leadOf('http://127.0.0.1:9/agent', {
    fetch: async () => answer(),
    maxMessageBytes: 1000,
  });
  expect((await lead.agent('lead').run('Ask')).text).toContain('not available');
});

test('wrong options are refused', () => {
  const options = { name: 'x', description: 'X.' };
  expect(() => a2aAgentTool('ftp://x', options)).toThrow('http(s) URL');
  expect(() => a2aAgentTool('https://x', { ...options, header: {} } as never)).toThrow('headers');
});
