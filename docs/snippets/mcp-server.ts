import assert from 'node:assert/strict';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'Sunny.' });
const app = waymark({ model, store: memoryStore() });
app.defineAgent({ name: 'weather', description: 'Knows the weather.', system: 'Be brief.' });
app.defineAgent({ name: 'desk', description: 'Answers questions about orders.' });
process.env.MCP_SECRET = 'a secret of thirty-two characters';
const port = 0;

// #region serve

import { serve } from 'waymark/server';

const server = await serve(app, { port, mcp: true });
console.log(`${server.url}/mcp`); // http://127.0.0.1:3000/mcp
// #endregion

const users = new Map([['token-of-ada', 'ada']]);
// #region options
const guarded = await serve(app, {
  port,
  host: '0.0.0.0',
  auth: (request) => {
    const token = request.headers.get('authorization')?.replace('Bearer ', '');
    const principal = token ? users.get(token) : undefined;
    return principal === undefined ? undefined : { principal };
  },
  mcp: {
    agents: ['desk'], // the others stay private
    name: 'acme',
    instructions: 'Ask the desk about orders. Keep the sessionId to continue a conversation.',
    secret: process.env.MCP_SECRET,
  },
});
// #endregion

const publicUrl = 'https://agents.example.com';
const login = { verify: async (_token: string, _audience: string) => ({ subject: 'ada' }) };
// #region oauth
const withOAuth = await serve(app, {
  port,
  host: '0.0.0.0',
  auth: async (request) => {
    const token = request.headers.get('authorization')?.replace('Bearer ', '');
    if (!token) return undefined;
    // Your code: check the signature, the expiry, and that the token was issued for this server.
    const { subject } = await login.verify(token, `${publicUrl}/mcp`);
    return { principal: subject };
  },
  mcp: {
    url: publicUrl,
    oauth: { authorizationServers: ['https://login.example.com'], scopes: ['agents'] },
  },
});
// #endregion
const metadata = await fetch(
  `http://127.0.0.1:${withOAuth.port}/.well-known/oauth-protected-resource/mcp`,
);
assert.equal(((await metadata.json()) as { resource: string }).resource, `${publicUrl}/mcp`);
await withOAuth.close();

const ping = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const ask = (url: string, headers = {}): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ping),
  });
const listed = (await (await ask(server.url)).json()) as { result: { tools: unknown[] } };
assert.equal(listed.result.tools.length, 2);
const base = `http://127.0.0.1:${guarded.port}`;
assert.equal((await ask(base)).status, 401);
const hers = await ask(base, { authorization: 'Bearer token-of-ada' });
const { result } = (await hers.json()) as { result: { tools: unknown[] } };
assert.equal(result.tools.length, 1);

await server.close();
await guarded.close();
await app.close();
