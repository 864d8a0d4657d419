import assert from 'node:assert/strict';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel([
  'Hello Ada.',
  { toolCalls: [{ name: 'show_map', ref: 'm', input: { city: 'Rome' } }] },
  'There it is.',
]);
const app = waymark({ model, store: memoryStore() });
app.defineAgent({ name: 'desk', system: 'Help.' });
const port = 0;

// #region serve
import { serve } from 'waymark/server';

const server = await serve(app, { port, agui: true });
console.log(`${server.url}/agui/desk`); // http://127.0.0.1:3000/agui/desk
// #endregion

// #region post
const response = await fetch(`${server.url}/agui/desk`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    threadId: 'ada-1', // the session
    runId: crypto.randomUUID(),
    protocolVersion: '1.0',
    messages: [{ id: crypto.randomUUID(), role: 'user', content: 'I am Ada.' }],
  }),
});
console.log(await response.text()); // data: {"type":"RUN_STARTED",… data: {"type":"TEXT_MESSAGE_START",…
// #endregion
assert.equal(response.status, 200);
assert.equal((await app.agents()[0]?.getSession('ada-1'))?.text, 'Hello Ada.');

const thread = await fetch(`${server.url}/agui/desk/ada-1`);
assert.match(await thread.text(), /MESSAGES_SNAPSHOT/);
await server.close();
await app.close();
