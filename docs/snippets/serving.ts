import assert from 'node:assert/strict';
import { memoryStore, WaymarkError, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
const app = waymark({ model, store: memoryStore() });
app.defineAgent({ name: 'chat' });
const port = 0;

// #region serve

import { serve } from 'waymark/server';

await app.ready(); // checks prompts, tools and store before the first request
const server = await serve(app, { port });
console.log(server.url); // http://127.0.0.1:3000
// #endregion

const response = await fetch(`${server.url}/agents/chat/turns`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ input: { message: { role: 'user', content: [{ text: 'hi' }] } } }),
});
assert.equal(response.status, 200);

const users = new Map([['token-of-ada', { id: 'ada', plan: 'free' }]]);
// #region auth
const guarded = await serve(app, {
  port,
  host: '0.0.0.0', // refused without auth
  auth: (request) => {
    const token = request.headers.get('authorization')?.replace('Bearer ', '');
    const user = token ? users.get(token) : undefined;
    return user && { principal: user.id, context: { plan: user.plan } };
  },
  authorize: ({ operation, context }) => {
    if (operation === 'deleteSession' && context?.plan === 'free') {
      throw new WaymarkError('PERMISSION_DENIED', 'Deleting sessions needs a paid plan.');
    }
    return true;
  },
  limits: { requestsPerMinute: 120, bodyBytes: 1024 * 1024 },
  cors: { origins: ['https://app.example.com'], credentials: true },
  onDisconnect: 'continue',
});
// #endregion
const base = `http://127.0.0.1:${guarded.port}`;
assert.equal((await fetch(`${base}/agents`)).status, 401);
const headers = { authorization: 'Bearer token-of-ada' };
assert.equal((await fetch(`${base}/agents`, { headers })).status, 200);
const sessions = await fetch(`${base}/agents/chat/sessions`, { headers });
// The session above has no owner, so ada cannot see it.
assert.deepEqual(await sessions.json(), { items: [] });
const refused = await fetch(`${base}/agents/chat/sessions/x`, { method: 'DELETE', headers });
assert.equal(refused.status, 403);

// #region revoke
users.delete('token-of-ada');
guarded.disconnect('ada'); // 0: the number of closed connections
// #endregion
assert.equal((await fetch(`${base}/agents`, { headers })).status, 401);

// #region handler
import { Hono } from 'hono';
import { handler } from 'waymark/server';

const agents = handler(app, { basePath: '/api/agents' });

const site = new Hono();
site.get('/', (c) => c.text('The rest of the site'));
site.all('/api/agents/*', (c) => agents(c.req.raw));
// #endregion
const mounted = await site.request('http://localhost/api/agents/agents');
assert.equal(mounted.status, 200);

// #region shutdown
process.once('SIGTERM', async () => {
  await server.close(); // no new requests; running turns finish, streams end
  await app.close(); // hands unfinished runs over and closes the store
});
// #endregion
process.removeAllListeners('SIGTERM');
await server.close();
await guarded.close();
await app.close();
