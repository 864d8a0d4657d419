import assert from 'node:assert/strict';
import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({
  patterns: [[/long/, { text: 'Well, ', hang: true }]],
  otherwise: 'Hello.',
});
const app = waymark({ model, store: memoryStore() });
const chat = app.defineAgent({
  name: 'chat',
  state: z.object({ topics: z.array(z.string()) }),
  initialState: { topics: ['tea'] },
});
const server = await serve(app, { port: 0, log: () => {} });
const { url } = server;
const token = async (): Promise<string> => 'secret';

// #region create

import { createClient, isWaymarkError } from 'waymark/client';

const client = createClient({
  url,
  headers: async () => ({ authorization: `Bearer ${await token()}` }), // called before every request
});

const remote = client.agent<typeof chat>('chat'); // `chat` is imported as a type only
// #endregion

// #region use
const hello = remote.stream('hello');
for await (const text of hello.textStream) console.log(text);
const answer = await hello.output;
const { sessionId } = answer;

const session = await remote.getSession(sessionId);
session?.state?.custom?.topics; // string[]
const recent = await remote.getSession(sessionId, { messages: { last: 50 } }); // not all messages
recent?.messageRange; // { from, total }; for the page before: messages: { last: 50, before: from }
await remote.fork(answer);
// #endregion
assert.deepEqual(session?.state?.custom, { topics: ['tea'] });

// #region retry
const requestId = 'order-1017';
const first = await remote.run('Order tea.', { requestId });
const again = await remote.run('Order tea.', { requestId }); // the same output; nothing runs twice
// #endregion
assert.deepEqual(again, first);

// #region stop
const patience = new AbortController();
const turn = remote.stream('something long', { sessionId, signal: patience.signal });
patience.abort(); // stops the turn on the server; the partial answer is kept
const { finishReason } = await turn.output;
// #endregion
assert.equal(finishReason, 'aborted');

// #region errors
try {
  await remote.restore('00000000-0000-7000-8000-000000000000');
} catch (error) {
  if (isWaymarkError(error) && error.status === 'NOT_FOUND') console.log(error.message);
}
// #endregion
await assert.rejects(remote.restore('00000000-0000-7000-8000-000000000000'), {
  status: 'NOT_FOUND',
});
await server.close();
await app.close();
