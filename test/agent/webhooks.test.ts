import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type App, memoryStore, toolApproval, verifyWebhook, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { receiverSecrets } from '../../src/webhook/sign.ts';
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
      const secrets = ['ada', 'ann', undefined].flatMap((owner) =>
        receiverSecrets(secret, { url, owner }),
      );
      const { id } = verifyWebhook(body, request.headers, { secret: secrets, tolerance: 1e9 });
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
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, got };
}

/** A server that calls back for each request, and answers it unless that says `hang`. `most`: connections at a time. */
async function listen(
  handle: (body: string, request: IncomingMessage, respond: ServerResponse) => 'hang' | void,
): Promise<{ readonly url: string; readonly most: () => number }> {
  let open = 0;
  let most = 0;
  const server = createServer((request, respond) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      if (handle(body, request, respond) !== 'hang') respond.end();
    });
  });
  server.on('connection', (socket) => {
    most = Math.max(most, ++open);
    socket.once('close', () => open--);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, most: () => most };
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

test.each([
  'https://localhost:1/',
  'https://127.0.0.1/',
  'https://10.0.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://[::ffff:10.0.0.1]/',
])('S728 refuses %s before it is stored, and says nothing about the address', async (url) => {
  const app = createApp({ webhooks: { secret } });
  const refusal = {
    status: 'INVALID_ARGUMENT',
    message: 'The URL of a webhook must lead to a public https address.',
  };
  await expect(app.webhooks.send({ id: 'a', url, body: 1 })).rejects.toMatchObject(refusal);
  await expect(app.webhooks.checkUrl(url)).rejects.toMatchObject(refusal);
  // A client cannot tell an unknown name from one of the private network.
  const unknown = 'https://nothing.invalid/';
  await expect(app.webhooks.checkUrl(unknown)).rejects.toMatchObject(refusal);
});

test('S725 each receiver has a secret of its own, by owner and URL', async () => {
  const app = createApp();
  const seen: { body: string; headers: IncomingHttpHeaders; url: string }[] = [];
  const { url } = await listen((body, { headers, url: path = '' }) => {
    seen.push({ body, headers, url: path });
  });
  const secretOf = (path: string, owner?: string): string =>
    app.webhooks.secretFor(`${url}${path}`, { owner });
  const all = [secretOf('a'), secretOf('b'), secretOf('a', 'ada'), secretOf('a', 'bob')];
  expect(new Set(all).size).toBe(4);
  expect(all).not.toContain(secret);
  expect(secretOf('a')).toBe(secretOf('a'));
  await app.webhooks.send({ id: '1', url: `${url}a`, body: 1 }, { owner: 'ada' });
  await expect.poll(() => seen.length).toBe(1);
  const [got] = seen;
  if (!got) return;
  const verify = (given: string): unknown =>
    verifyWebhook(got.body, got.headers, { secret: given });
  expect(verify(secretOf('a', 'ada'))).toMatchObject({ id: expect.stringMatching(/^msg_/) });
  const others = [secret, secretOf('a'), secretOf('a', 'bob'), secretOf('b', 'ada')];
  for (const other of others) expect(() => verify(other)).toThrow('not genuine');
});

test('S725 while the secret is rotated, receivers verify with the old or the new one', async () => {
  const next = `whsec_${btoa('another secret for webhooks, of tests')}`;
  const seen: [string, IncomingHttpHeaders][] = [];
  const { url } = await listen((body, { headers }) => void seen.push([body, headers]));
  const app = createApp({ webhooks: { ...webhooks, secret: [next, secret] } });
  await app.webhooks.send({ id: '1', url, body: 1 });
  await expect.poll(() => seen.length).toBe(1);
  const [body, headers] = seen[0] ?? expect.fail();
  for (const each of [next, secret]) {
    const known = createApp({ webhooks: { ...webhooks, secret: each } }).webhooks.secretFor(url);
    expect(verifyWebhook(body, headers, { secret: known }).id).toMatch(/^msg_/);
  }
  expect(app.webhooks.secretFor(url)).toBe(receiverSecrets(next, { url })[0]);
});

test('S727 a receiver that does not answer has few connections, and others get their webhooks', async () => {
  const app = createApp({ webhooks: { ...webhooks, timeout: 60_000 } });
  const silent = await listen(() => 'hang');
  const { url, got } = await receiver();
  for (let n = 0; n < 60; n++) {
    await app.webhooks.send({ id: `silent ${n}`, url: silent.url, body: n }, { owner: 'bob' });
  }
  await app.webhooks.send({ id: 'heard', url, body: 1 }, { owner: 'ada' });
  await expect.poll(() => got.length).toBe(1);
  await expect.poll(silent.most).toBe(8);
  // Of one owner, to many hosts.
  const hosts = await Promise.all([1, 2, 3].map(() => listen(() => 'hang')));
  for (const host of hosts) {
    for (let n = 0; n < 8; n++) {
      await app.webhooks.send({ id: `${host.url} ${n}`, url: host.url, body: n }, { owner: 'eve' });
    }
  }
  const opened = (): number => hosts.reduce((sum, { most }) => sum + most(), 0);
  await expect.poll(opened).toBe(16);
  expect(silent.most()).toBe(8);
});

test('S727 what waited for a connection is sent when one is free', async () => {
  const app = createApp();
  const got = new Set<string>();
  let hold: (() => void)[] | undefined = [];
  const { url, most } = await listen((body, _, respond) => {
    got.add(body);
    if (hold === undefined) return undefined;
    hold.push(() => respond.end());
    return 'hang';
  });
  for (let n = 0; n < 20; n++) await app.webhooks.send({ id: `${n}`, url, body: n });
  await expect.poll(() => got.size).toBe(8);
  const held = hold;
  hold = undefined;
  for (const release of held) release();
  await expect.poll(() => got.size).toBe(20);
  expect(most()).toBe(8);
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
