import { serve } from '@hono/node-server';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type App, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { postgresStore } from 'waymark/postgres';
import { type Desk, defineDesk } from '../../examples/support-desk/desk.ts';
import { demoShop, type Shop } from '../../examples/support-desk/shop.ts';
import { createSite } from '../../examples/support-desk/site.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const secret = 'a secret of the test, thirty-two bytes';
let postgres: TestPostgres;
let closings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
});
afterEach(async () => {
  for (const close of closings.reverse()) await close();
  closings = [];
});
afterAll(() => postgres.stop());

/** A process of the desk: an app over the shared database, and its site. */
async function openDesk(shop: Shop) {
  const app: App = waymark({
    store: postgresStore({ connectionString: postgres.connectionString }),
  });
  defineDesk(app, shop);
  await app.ready();
  const site = createSite(app, { secret, page: '' });
  const listening = Promise.withResolvers<string>();
  const server = serve({ fetch: site.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
    listening.resolve(`http://127.0.0.1:${port}`),
  );
  const url = await listening.promise;
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await new Promise((closed) => server.close(closed));
    await app.close();
  };
  closings.push(close);
  return { url, close };
}

/** Signs in as the page does, and calls the agent as the page does. */
async function signIn(url: string, id: string) {
  const response = await fetch(`${url}/sign-in`, { method: 'POST', body: JSON.stringify({ id }) });
  const [cookie = ''] = response.headers.getSetCookie();
  const headers = { cookie: String(cookie.split(';')[0]) };
  return {
    status: response.status,
    desk: createClient({ url: `${url}/api`, headers }).agent<Desk>('desk'),
  };
}

test('a refund waits for an approval, which another process takes after a restart, once', async () => {
  const shop = demoShop();
  const first = await openDesk(shop);
  const { desk } = await signIn(first.url, 'ada');
  const found = await desk.run('Where is order 7?');
  expect(found.text).toBe('Ines bought “Desk lamp” and paid 40 €.');
  const { sessionId } = found;
  const asked = await desk.run('Refund 15 of order 7', { sessionId });
  expect(asked.interrupts[0]?.metadata).toEqual({ question: 'Refund 15 € of order 7?' });
  expect(shop.payments.size).toBe(0);
  await first.close();

  const second = await openDesk(shop);
  const again = (await signIn(second.url, 'ada')).desk;
  const done = await again.resume({ sessionId }, (request) => request.approve());
  expect(done.text).toBe('Refunded 15 €, payment p-1.');
  expect((await again.getSession(sessionId))?.state).toMatchObject({
    custom: { customer: 'Ines', refunds: [{ order: '7', euros: 15, payment: 'p-1' }] },
    artifacts: [{ name: 'receipt-p-1.md' }],
  });
  await expect(again.resume({ sessionId }, (request) => request.approve())).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
  });
  expect([...shop.payments.values()]).toEqual([{ order: '7', euros: 15 }]);
  // What was paid back counts in another conversation, too.
  expect((await again.run('Refund 30 of order 7')).text).toContain('Only 25 € can be refunded.');
});

test('the rights of the employee decide, not the model', async () => {
  const shop = demoShop();
  const { url } = await openDesk(shop);
  const { desk } = await signIn(url, 'bob');
  const refused = await desk.run('Refund 200 of order 8');
  expect(refused.text).toContain('You may refund up to 50 €.');
  const tooMuch = await desk.run('Refund 41 of order 7');
  expect(tooMuch.text).toContain('Only 40 € can be refunded.');
  expect((await desk.run('Where is order 12?')).text).toContain('There is no order 12.');
  expect(shop.payments.size).toBe(0);
});

test('employees see their own conversations only, and strangers nothing', async () => {
  const { url } = await openDesk(demoShop());
  const { desk } = await signIn(url, 'ada');
  const { sessionId } = await desk.run('Where is order 9?');
  const bob = await signIn(url, 'bob');
  expect(await bob.desk.getSession(sessionId)).toBeUndefined();
  const stranger = await signIn(url, 'eve');
  expect(stranger.status).toBe(401);
  await expect(stranger.desk.run('Hello')).rejects.toMatchObject({ status: 'UNAUTHENTICATED' });
  const headers = { cookie: 'desk=ada.forged' };
  const forged = createClient({ url: `${url}/api`, headers }).agent('desk');
  await expect(forged.run('Hello')).rejects.toMatchObject({ status: 'UNAUTHENTICATED' });
});
