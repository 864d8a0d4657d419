import { EdgeVM } from '@edge-runtime/vm';
import { beforeAll, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { bundleFor } from './bundle-for.ts';
import { linkPackage } from './commands.ts';

const app = `
import { memoryStore, waymark } from 'waymark';
import { handler } from 'waymark/server';
import { z } from 'zod';

const model = {
  name: 'echo',
  run: async ({ messages }) => {
    const last = messages.at(-1);
    const result = last.content.find((part) => 'toolResponse' in part);
    if (!result) {
      const isBooking = last.content[0].text === 'Book it';
      const toolRequest = isBooking
        ? { name: 'book', ref: 'call', input: { room: 7 } }
        : { name: 'add', ref: 'call', input: { a: 1, b: 2 } };
      return { message: { role: 'model', content: [{ toolRequest }] }, finishReason: 'stop' };
    }
    const { name, output } = result.toolResponse;
    const content = [{ text: (name === 'book' ? 'Booked: ' : 'The sum is ') + output }];
    return { message: { role: 'model', content }, finishReason: 'stop' };
  },
};
const app = waymark({ store: memoryStore(), model });
const add = app.defineTool(
  { name: 'add', description: 'Adds', input: z.object({ a: z.number(), b: z.number() }) },
  ({ a, b }) => a + b,
);
const book = app.defineTool(
  { name: 'book', description: 'Books a room', input: z.object({ room: z.number() }) },
  ({ room }, { interrupt, resumed }) => {
    if (resumed === undefined) interrupt({ question: 'Book room ' + room + '?' });
    return 'room ' + room;
  },
);
app.defineAgent({ name: 'chat', tools: [add, book] });
globalThis.answer = handler(app);
`;

let vm: EdgeVM;
beforeAll(async () => {
  linkPackage();
  const script = await bundleFor('edge-light', { contents: app });
  vm = new EdgeVM({ extend: (context) => Object.assign(context, { process: undefined }) });
  vm.evaluate(script);
});

async function post(path: string, body: object, accept = 'application/json'): Promise<Response> {
  const headers = { accept, 'content-type': 'application/json' };
  const init = JSON.stringify({ method: 'POST', headers, body: JSON.stringify(body) });
  return await vm.evaluate(`answer(new Request('http://localhost${path}', ${init}))`);
}

test('a turn calls a tool in the Edge runtime, and the next one goes on', async () => {
  const message = { role: 'user', content: [{ text: 'Add them' }] };
  const first = await (await post('/agents/chat/turns', { input: { message } })).json();
  expect(first).toMatchObject({ finishReason: 'stop', output: 'The sum is 3' });
  const { sessionId } = first;
  const next = await post('/agents/chat/turns', { init: { sessionId }, input: { message } });
  expect(await next.json()).toMatchObject({ finishReason: 'stop', sessionId });
});

test('a turn is streamed in the Edge runtime', async () => {
  const message = { role: 'user', content: [{ text: 'Add them' }] };
  const response = await post('/agents/chat/turns', { input: { message } }, 'text/event-stream');
  const text = await response.text();
  expect(text).toContain('event: output');
  expect(text).toContain('The sum is 3');
});

test('an interrupt is answered in a later request in the Edge runtime', async () => {
  // The client of the package, over the handler in the Edge runtime.
  const agent = client({
    url: 'http://localhost',
    agent: 'chat',
    fetch: async (input, init) => {
      const request = new Request(input, init);
      const body = request.method === 'POST' ? await request.text() : undefined;
      const passed = { method: request.method, headers: Object.fromEntries(request.headers), body };
      return vm.evaluate(`answer(new Request('${request.url}', ${JSON.stringify(passed)}))`);
    },
  });
  const asked = await agent.run('Book it');
  expect(asked.interrupts.map(({ toolName }) => toolName)).toEqual(['book']);
  const done = await agent.resume(asked, (request) => request.approve());
  expect(done.text).toBe('Booked: room 7');
});
