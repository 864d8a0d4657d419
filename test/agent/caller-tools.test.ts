import { type } from 'arktype';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentApi } from '../../src/api/agent-api.ts';
import type { CallerTool } from '../../src/api/turn-values.ts';
import { createClient } from '../../src/client/index.ts';
import { agentTool, callerTools, toolApproval } from '../../src/index.ts';
import { createAgentStore } from '../../src/react/index.ts';
import { serve } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { openApp, refused } from './support/kit.ts';
import { mortalStore } from './support/mortal-store.ts';

const showMap = {
  name: 'show_map',
  description: 'Shows a map.',
  inputSchema: z.object({ city: z.string() }),
} satisfies CallerTool;

const call = { name: 'show_map', ref: 'm', input: { city: 'Lisbon' } };

test('S360 schemas of zod, arktype and valibot and JSON Schemas are given to the model as JSON Schema', async () => {
  await using app = openApp();
  const model = scriptedModel(['Hello.']);
  const chat = app.defineAgent({ name: 'chat', model });
  await chat.run('hi', {
    tools: [
      showMap,
      { name: 'ark', inputSchema: type({ city: 'string' }) },
      { name: 'vali', inputSchema: v.object({ city: v.string() }) },
      { name: 'plain', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } },
    ],
  });
  const city = { type: 'object', properties: { city: { type: 'string' } } };
  const tools = model.requests[0]?.tools ?? [];
  expect(tools.map(({ name }) => name)).toEqual(['show_map', 'ark', 'vali', 'plain']);
  for (const { inputSchema } of tools) expect(inputSchema).toMatchObject(city);
});

test('S361 the calls of a chat take tools, and the interrupts of its output answer them', async () => {
  await using app = openApp();
  const model = scriptedModel([{ toolCalls: [call] }, 'Shown.', { toolCalls: [call] }, 'Again.']);
  const chat = app.defineAgent({ name: 'chat', model }).chat();
  const asked = await chat.send('where?', { tools: [showMap] });
  expect(asked.interrupts).toMatchObject([
    { toolName: 'show_map', input: { city: 'Lisbon' }, metadata: { executedBy: 'caller' } },
  ]);
  const shown = await chat.resume(asked.interrupts.map((request) => request.respond({ zoom: 3 })));
  expect(shown.text).toBe('Shown.');
  const run = await chat.start('again', { tools: [showMap] });
  const paused = await run.wait();
  expect(paused.interrupts).toHaveLength(1);
  const done = await chat.stream({
    resume: { respond: [{ toolResponse: { name: 'show_map', ref: 'm' } }] },
  }).output;
  expect(done.text).toBe('Again.');
});

test('S362 an agent whose model calls no tools takes none', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([]), toolChoice: 'none' });
  const error = await refused(chat.run('hi', { tools: [showMap] }), 'INVALID_ARGUMENT');
  expect(error.message).toContain('toolChoice');
  expect(await chat.listRuns()).toEqual({ items: [] });
});

test('S362 tools that are no list, or have no schema, are refused with what is wrong', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([]) });
  for (const tools of [{}, 'x', [null], [{ name: 'a' }], [{ name: 'a', inputSchema: 'b' }]]) {
    await refused(chat.run('hi', { tools: tools as never }), 'INVALID_ARGUMENT');
  }
});

test('S360 a sub-agent does not get the tools of the caller', async () => {
  await using app = openApp();
  const inner = scriptedModel(['Found.']);
  const helper = app.defineAgent({ name: 'helper', model: inner });
  const outer = scriptedModel([
    { toolCalls: [{ name: 'helper', input: { message: 'find' } }] },
    'Done.',
  ]);
  const chat = app.defineAgent({ name: 'chat', model: outer, tools: [agentTool(helper)] });
  await chat.run('hi', { tools: [showMap] });
  expect(outer.requests[1]?.tools.map(({ name }) => name)).toEqual(['helper', 'show_map']);
  expect(inner.requests[0]?.tools).toEqual([]);
});

test('S363 a worker that takes over the run offers the tools of its call', async () => {
  const claimTtl = 60_000;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const lost = scriptedModel([{ chunks: ['lost'], hang: true }]);
  const before = first.defineAgent({ name: 'chat', model: lost });
  const run = await before.start('where?', { tools: [showMap] });
  await eventually(async () => expect(lost.requests).toHaveLength(1));
  line.cut();
  const model = scriptedModel([{ toolCalls: [call] }, 'Shown.']);
  const chat = second.defineAgent({ name: 'chat', model });
  advance(2 * claimTtl);
  const paused = await chat.wait(run.id);
  expect(paused.interrupts.map(({ toolName }) => toolName)).toEqual(['show_map']);
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['show_map']);
  const done = await chat.resume(
    paused,
    paused.interrupts.map((request) => request.respond('ok')),
  );
  expect(done.text).toBe('Shown.');
  await line.heal();
});

test('S361 a call that needs approval is approved first, and then executed by the caller', async () => {
  await using app = openApp();
  const model = scriptedModel([{ toolCalls: [call] }, 'Shown.']);
  const use = [toolApproval(({ name }) => name === 'show_map')];
  const chat = app.defineAgent({ name: 'chat', model, use });
  const tools = [showMap];
  const held = await chat.run('where?', { tools });
  expect(held.interrupts[0]?.metadata).toHaveProperty('approval');
  const approvals = held.interrupts.map((request) => request.approve());
  const asked = await chat.resume(held, approvals, { tools });
  expect(asked.interrupts[0]?.metadata).toMatchObject({ executedBy: 'caller' });
  const done = await chat.resume(asked, asked.interrupts[0]?.respond(1) ?? []);
  expect(done.text).toBe('Shown.');
});

test('S360 a custom agent passes the tools of its call to generate', async () => {
  await using app = openApp();
  const model = scriptedModel([{ toolCalls: [call] }]);
  const chat = app.defineCustomAgent({ name: 'chat' }, (session) =>
    session.run(async ({ tools }) => {
      const { messages } = await app.generate({
        model,
        messages: session.messages,
        tools: callerTools(tools),
      });
      session.addMessages(...messages);
    }),
  );
  const asked = await chat.run('where?', { tools: [showMap] });
  expect(asked.finishReason).toBe('interrupted');
  expect(asked.interrupts.map(({ toolName }) => toolName)).toEqual(['show_map']);
});

const transports = ['http', 'websocket'] as const;

test.each(transports)('S360 a client over %s sends its tools', async (transport) => {
  await using app = openApp();
  const model = scriptedModel([
    { toolCalls: [call] },
    'Shown.',
    { toolCalls: [call] },
    'Shown again.',
    { toolCalls: [call] },
    'Page.',
  ]);
  app.defineAgent({ name: 'chat', model });
  const server = await serve(app, { port: 0, log: () => {} });
  await using _ = { [Symbol.asyncDispose]: () => server.close() };
  const chat: AgentApi = createClient({ url: server.url, transport }).agent('chat');
  const asked = await chat.run('where?', { tools: [showMap] });
  const done = await chat.resume(
    asked,
    asked.interrupts.map((request) => request.respond(1)),
  );
  expect(done.text).toBe('Shown.');

  const connection = chat.streamBidi();
  await connection.sendText('again', { tools: [showMap] });
  for await (const chunk of connection.turn()) void chunk;
  const respond = [{ toolResponse: { name: 'show_map', ref: 'm', output: 2 } }];
  await connection.sendResume({ respond });
  expect((await connection.output()).text).toBe('Shown again.');

  const store = createAgentStore({ agent: chat });
  await store.actions.send('on the page', { tools: [showMap] });
  const [request] = store.getView().interrupts;
  const shown = request && (await store.actions.resume(request.respond(3), { tools: [showMap] }));
  expect(shown?.text).toBe('Page.');
  expect(model.requests.at(-1)?.tools.map(({ name }) => name)).toEqual(['show_map']);

  const bad = { name: 'vali', inputSchema: v.object({}) };
  await expect(chat.run('hi', { tools: [bad] })).rejects.toMatchObject({
    message: expect.stringContaining('Pass a JSON Schema'),
  });
});
