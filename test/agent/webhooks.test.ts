import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type App, memoryStore, toolApproval, verifyWebhook, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { movableClock } from '../support/movable-clock.ts';
import { mortalStore } from './support/mortal-store.ts';

const secret = `whsec_${btoa('a secret for the webhooks of tests')}`;
const webhooks = { secret, allowLoopback: true };

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Received {
  readonly id: string;
  readonly body: unknown;
}

/** A receiver that verifies each webhook; `statuses` are its first answers, later ones are 200. */
async function receiver(...statuses: (number | 'hang')[]): Promise<{
  readonly url: string;
  readonly got: Received[];
}> {
  const got: Received[] = [];
  const server = createServer((request, respond) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      const { id } = verifyWebhook(body, request.headers, { secret, tolerance: 1e9 });
      got.push({ id, body: JSON.parse(body) });
      const status = statuses.shift() ?? 200;
      if (status !== 'hang') respond.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, got };
}

function createApp(options: Parameters<typeof waymark>[0] = {}): App & {
  readonly webhooks: NonNullable<App['webhooks']>;
} {
  const app = waymark({ store: memoryStore(), webhooks, onError: () => {}, ...options });
  app.defineCustomAgent({ name: 'any' }, async () => {});
  closing.push(() => app.close({ grace: 0 }));
  return app as ReturnType<typeof createApp>;
}

test('S370 sends an event once under a stable id, per owner', async () => {
  const app = createApp();
  const { url, got } = await receiver();
  const event = { id: 'order-1', url, body: { type: 'order', data: [1] } };
  expect(await app.webhooks.send(event)).toBe(true);
  await expect.poll(() => got.length).toBe(1);
  expect(await app.webhooks.send(event)).toBe(false);
  expect(await app.webhooks.send(event, { owner: 'ada' })).toBe(true);
  await expect.poll(() => got.length).toBe(2);
  expect(got.map(({ body }) => body)).toEqual([event.body, event.body]);
  expect(new Set(got.map(({ id }) => id)).size).toBe(2);
  expect(got[0]?.id).toMatch(/^msg_[0-9a-f]{32}$/);
});

test('S371 retries with growing delays under the same id', async () => {
  const { clock, advance } = movableClock();
  const app = createApp({ clock, store: memoryStore({ clock }), claimTtl: 600_000 });
  const { url, got } = await receiver(500, 429);
  await app.webhooks.send({ id: 'a', url, body: 1 });
  await expect.poll(() => got.length).toBe(1);
  advance(2_000);
  await expect.poll(() => got.length).toBe(2);
  advance(4_000);
  await expect.poll(() => got.length).toBe(3);
  expect(new Set(got.map(({ id }) => id)).size).toBe(1);
});

test('S371 gives up after the last attempt, says so, and can be sent again', async () => {
  const errors: unknown[] = [];
  const app = createApp({
    webhooks: { ...webhooks, attempts: 1 },
    onError: (error) => errors.push(error),
  });
  const { url, got } = await receiver(500);
  await app.webhooks.send({ id: 'a', url, body: 1 });
  await expect.poll(() => errors).toMatchObject([{ status: 'UNAVAILABLE' }]);
  expect(String(errors[0])).toContain('The receiver answered 500.');
  expect(await app.webhooks.send({ id: 'a', url, body: 1 })).toBe(true);
  await expect.poll(() => got.length).toBe(2);
});

test('S370 another process delivers what a dead one had stored, under the same id', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const { url, got } = await receiver('hang');
  const dying = createApp({ clock, store: line, claimTtl: 60_000 });
  await dying.webhooks.send({ id: 'a', url, body: 1 });
  await expect.poll(() => got.length).toBe(1);
  line.cut();
  closing.push(() => line.heal());
  const other = createApp({ clock, store, claimTtl: 60_000 });
  advance(120_000);
  await other.engine.recover();
  await expect.poll(() => got.length).toBe(2);
  expect(new Set(got.map(({ id }) => id)).size).toBe(1);
});

test('S372 clients cannot reach the agent that delivers webhooks', async () => {
  const app = createApp();
  expect(app.agents().map(({ name }) => name)).toEqual(['any']);
  expect(() => app.agent('waymark.webhooks')).toThrow('waymark.webhooks');
  expect(() => app.defineCustomAgent({ name: 'waymark.webhooks' }, async () => {})).toThrow(
    'There is already an agent',
  );
});

test.each([
  ['http://example.com/', 'must begin with https://'],
  ['https://a:b@example.com/', 'must not have credentials'],
  ['nonsense', 'must be an absolute URL'],
])('S372 refuses %s before it is stored', async (url, message) => {
  const app = createApp({ webhooks: { secret } });
  await expect(app.webhooks.send({ id: 'a', url, body: 1 })).rejects.toThrow(message);
});

test('S372 refuses a name that leads to this machine, for good', async () => {
  const errors: unknown[] = [];
  const app = createApp({ webhooks: { secret }, onError: (error) => errors.push(error) });
  await app.webhooks.send({ id: 'a', url: 'https://localhost:1/', body: 1 });
  await expect.poll(() => errors.length).toBe(1);
  expect(String(errors[0])).toContain('only public addresses are allowed');
});

test('webhooks need a store and a real secret', () => {
  expect(() => waymark({ webhooks })).toThrow('stored before they are sent');
  expect(() => waymark({ store: memoryStore(), webhooks: { secret: 'x' } })).toThrow('whsec_');
});

test('S370 S416 S495 `onInterrupt` sends one signed webhook for each turn that waits', async () => {
  const { url, got } = await receiver(500);
  const { clock, advance } = movableClock();
  const app: ReturnType<typeof createApp> = createApp({
    store: memoryStore({ clock }),
    clock,
    model: scriptedModel({
      patterns: [[/pay/, { toolCalls: [{ name: 'pay', input: { euros: 20 } }] }]],
      otherwise: 'ok',
    }),
    onInterrupt: async ({ runId, owner, requests, ...about }) => {
      const body = { ...about, requests: [...requests] };
      const event = { id: runId, url, body };
      // Told twice, sent once.
      await app.webhooks.send(event, { owner });
      await app.webhooks.send(event, { owner });
    },
  });
  const pay = app.defineTool({ name: 'pay', description: 'Pays.' }, () => 'paid');
  const use = [toolApproval(['pay'], { expiresIn: 60_000 })];
  const desk = app.defineAgent({ name: 'desk', tools: [pay], use });
  const asked = await desk.run('pay', { owner: 'ann' });
  await expect.poll(() => got.length).toBe(1);
  // The receiver was not available; the second attempt has the same id.
  const sent = (): number => {
    advance(1_000);
    return got.length;
  };
  await expect.poll(sent).toBe(2);
  expect(got[1]).toEqual(got[0]);
  expect(got[0]?.body).toMatchObject({
    agent: 'desk',
    sessionId: asked.sessionId,
    requests: [
      {
        toolRequest: { name: 'pay', input: { euros: 20 } },
        metadata: { expiresAt: asked.interrupts[0]?.expiresAt },
      },
    ],
  });
  await desk.run('hello', { owner: 'ann' });
  const again = await desk.run('pay', { owner: 'ann' });
  await expect.poll(() => got.length).toBe(3);
  expect(got[2]?.body).toMatchObject({ sessionId: again.sessionId });
});
