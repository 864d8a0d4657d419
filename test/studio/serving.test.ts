import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hasSpanSink } from '../../src/core/trace.ts';
import { memoryStore, waymark } from '../../src/index.ts';
import { type ServeOptions, serve } from '../../src/server/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-studio-'));
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>Studio</title>');
  await writeFile(join(folder, 'assets', 'app-1.js'), 'export {};');
  await writeFile(join(folder, 'secret.env'), 'KEY=1');
});
afterAll(() => rm(folder, { recursive: true }));

async function openServer(options: ServeOptions = {}) {
  const model = scriptedModel(['one', 'two'], { name: 'script' });
  const app = waymark({ model, store: memoryStore() });
  const chat = app.defineAgent({ name: 'chat' });
  const server = await serve(app, { port: 0, log: () => {}, studio: folder, ...options });
  return {
    url: server.url,
    chat,
    async [Symbol.asyncDispose]() {
      await server.close();
      await app.close();
    },
  };
}

/** A GET with a host of one's own choice, which fetch does not allow. */
function getAs(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, ({ statusCode }) => resolve(statusCode))
      .on('error', reject)
      .end();
  });
}

test('the studio is served with a policy that lets nothing in from elsewhere', async () => {
  await using server = await openServer();
  const page = await fetch(`${server.url}/studio/`);
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toContain('text/html');
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self';");
  expect(policy).not.toContain('unsafe');
  const script = await fetch(`${server.url}/studio/assets/app-1.js`);
  expect(script.headers.get('cache-control')).toContain('immutable');
  const again = await fetch(`${server.url}/studio/`, {
    headers: { 'if-none-match': page.headers.get('etag') ?? '' },
  });
  expect(again.status).toBe(304);
});

test('a browser that asks for the server itself is led to the studio; a program is not', async () => {
  await using server = await openServer();
  const headers = { accept: 'text/html,application/xhtml+xml' };
  const led = await fetch(`${server.url}/`, { headers, redirect: 'manual' });
  expect([led.status, led.headers.get('location')]).toEqual([302, '/studio/']);
  expect((await fetch(`${server.url}/`)).status).toBe(404);
});

test('nothing but the files of the studio can be had', async () => {
  await using server = await openServer();
  for (const path of ['secret.env', '..%2fpackage.json', 'assets/', 'assets/../../x', 'no.js']) {
    expect((await fetch(`${server.url}/studio/${path}`)).status).toBe(404);
  }
});

test('a page that made its name lead here gets nothing', async () => {
  await using server = await openServer();
  expect(await getAs(`${server.url}/studio/`, 'evil.example')).toBe(403);
  expect(await getAs(`${server.url}/studio/traces?session=x`, 'evil.example')).toBe(403);
});

test('spans of a session can be read while the studio is served', async () => {
  await using server = await openServer();
  const { sessionId, snapshotId } = await server.chat.runText('hello');
  await server.chat.runText('hello');
  const response = await fetch(`${server.url}/studio/traces?session=${sessionId}`);
  const { items } = await response.json();
  expect(items.map(({ name }: { name: string }) => name)).toEqual([
    'invoke_agent chat',
    'turn 0',
    'chat script',
  ]);
  expect(items[1].attributes['waymark.snapshot.id']).toBe(snapshotId);
  expect(items[1].endedAt).toBeGreaterThanOrEqual(items[1].startedAt);
});

test('where principals are told apart, no spans are kept', async () => {
  await using server = await openServer({ auth: () => ({ principal: 'ann' }) });
  expect((await fetch(`${server.url}/studio/`)).status).toBe(200);
  expect((await fetch(`${server.url}/studio/traces?session=x`)).status).toBe(404);
  expect(hasSpanSink()).toBe(false);
});

test('nobody listens for spans once the server is closed, or when it could not open', async () => {
  {
    await using server = await openServer();
    expect(hasSpanSink()).toBe(true);
    await expect(openServer({ port: Number(new URL(server.url).port) })).rejects.toThrow(
      'Could not listen',
    );
  }
  expect(hasSpanSink()).toBe(false);
});

test('a folder without a studio is refused', async () => {
  await expect(openServer({ studio: join(folder, 'assets') })).rejects.toThrow('no built studio');
});
