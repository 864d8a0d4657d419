import assert from 'node:assert/strict';
import { memoryStore, toolApproval, WaymarkError, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const model = scriptedModel({
  patterns: [[/invoices/, { toolCalls: [{ name: 'list_invoices', input: {} }] }]],
  afterTools: (_, [result]) => JSON.stringify(result),
  otherwise: 'Hello.',
});
const invoices = [
  { tenant: 'acme', id: 1 },
  { tenant: 'globex', id: 2 },
];
const accounts = new Map([
  ['token-of-ada', { user: 'ada', tenant: 'acme', role: 'member' }],
  ['token-of-bob', { user: 'bob', tenant: 'globex', role: 'admin' }],
]);
const port = 0;

// #region tools
const store = memoryStore(); // sqliteStore or postgresStore in production
const app = waymark({ model, store });

// A caller's context, as `auth` returns it. Tools filter by it; the model cannot choose it.
const caller = z.object({ tenant: z.string(), user: z.string(), role: z.string() });

const listInvoices = app.defineTool(
  { name: 'list_invoices', description: 'Lists the invoices', input: z.object({}) },
  (_, { context }) => {
    const { tenant } = caller.parse(context);
    return invoices.filter((invoice) => invoice.tenant === tenant);
  },
);

app.defineAgent({
  name: 'desk',
  system: ({ context }) => `You work for ${context.tenant ?? 'a company'}.`, // no caller in app.ready()
  tools: [listInvoices],
  limits: { owner: { tokens: 2_000_000, per: 'month' } }, // each owner has a budget
  use: [toolApproval(({ name }) => name.startsWith('delete_'))],
});
// #endregion

// #region serve
const server = await serve(app, {
  port,
  auth: (request) => {
    const token = request.headers.get('authorization')?.replace('Bearer ', '');
    const account = token ? accounts.get(token) : undefined;
    if (!account) return undefined; // 401
    // The principal is the owner of the sessions. This one gives every user their own.
    return { principal: `${account.tenant}/${account.user}`, context: account };
  },
  authorize: ({ operation, context }) => {
    if (operation !== 'deleteSession' || context?.role === 'admin') return true;
    throw new WaymarkError('PERMISSION_DENIED', 'Only administrators can delete conversations.');
  },
});
// #endregion

const as = (token: string) =>
  createClient({ url: server.url, headers: { authorization: `Bearer ${token}` } }).agent('desk');
const first = await as('token-of-ada').run('Show my invoices');
assert.equal(first.text, '[{"tenant":"acme","id":1}]');
assert.equal(await as('token-of-bob').getSession(first.sessionId), undefined);
await assert.rejects(as('token-of-ada').deleteSession(first.sessionId), /administrators/);

// #region offboard
const document = await store.maintenance?.exportSession(
  { agent: 'desk', owner: 'acme/ada' },
  first.sessionId,
);
server.disconnect('acme/ada'); // ends open streams and WebSockets
await store.maintenance?.eraseOwner('acme/ada'); // sessions, runs, events and counters
// #endregion
assert.ok(document);
assert.equal(await as('token-of-ada').getSession(first.sessionId), undefined);
await server.close();
await app.close();
