import assert from 'node:assert/strict';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({ patterns: [], otherwise: 'Sunny.' });
const app = waymark({ model, store: memoryStore() });
app.defineAgent({ name: 'weather', description: 'Knows the weather.', system: 'Be brief.' });
app.defineAgent({ name: 'desk', description: 'Answers questions about orders.' });
process.env.STATE_SECRET = 'a secret of thirty-two characters';
const port = 0;

// #region serve

import { serve } from 'waymark/server';

const server = await serve(app, { port, openai: true });
console.log(`${server.url}/openai/v1`); // http://127.0.0.1:3000/openai/v1
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
  openai: {
    agents: ['desk'], // the others stay private
    allow: ['sampling'], // callers may set temperature, top_p and max_output_tokens
    secret: process.env.STATE_SECRET,
  },
});
// #endregion

const models = async (url: string, headers = {}): Promise<{ data: unknown[] }> =>
  (await (await fetch(`${url}/openai/v1/models`, { headers })).json()) as { data: unknown[] };
assert.equal((await models(server.url)).data.length, 2);
const base = `http://127.0.0.1:${guarded.port}`;
assert.equal((await fetch(`${base}/openai/v1/models`)).status, 401);
assert.equal((await models(base, { authorization: 'Bearer token-of-ada' })).data.length, 1);

await server.close();
await guarded.close();
await app.close();
