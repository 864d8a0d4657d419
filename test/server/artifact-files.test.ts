import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { type RunningServer, serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';

const bytes = Uint8Array.from({ length: 1_000_000 }, (_, at) => (at * 31) % 251);
const queries: string[] = [];
let server: RunningServer;
let snapshotId = '';

beforeAll(async () => {
  const store = sqliteStore(':memory:', { onQuery: (name) => queries.push(name) });
  const app = waymark({ store });
  const agent = app.defineCustomAgent({ name: 'files' }, async (session) => {
    await session.run(async () => {
      await session.saveFile({ name: 'a/b.mp4', contentType: 'video/mp4', data: bytes });
      await session.saveFile({ name: 'odd', contentType: 'text/html\r\nx: y', data: bytes });
      await session.saveFile({ name: 'empty', data: new Uint8Array(0) });
    });
  });
  const output = await agent.run('go', { sessionId: 's', owner: 'ann' });
  snapshotId = output.snapshotId ?? '';
  server = await serve(app, {
    port: 0,
    log: () => {},
    auth: (request) => ({ principal: request.headers.get('x-user') ?? 'nobody' }),
  });
});
afterAll(() => server.close());

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${server.url}/agents/files/${path}`, { headers: { 'x-user': 'ann', ...headers } });
const file = 'sessions/s/artifacts/a%2Fb.mp4';

test('S632: a saved file is served whole, of the head and of a snapshot', async () => {
  for (const path of [file, `snapshots/${snapshotId}/artifacts/a%2Fb.mp4`]) {
    const whole = await get(path);
    expect(whole.status).toBe(200);
    expect(whole.headers.get('content-type')).toBe('video/mp4');
    expect(whole.headers.get('content-length')).toBe('1000000');
    expect(whole.headers.get('x-content-type-options')).toBe('nosniff');
    expect(new Uint8Array(await whole.arrayBuffer())).toEqual(bytes);
  }
  const odd = await get('sessions/s/artifacts/odd');
  expect(odd.headers.get('content-type')).toBe('application/octet-stream');
  await odd.body?.cancel();
  const empty = await get('sessions/s/artifacts/empty');
  expect([empty.status, (await empty.arrayBuffer()).byteLength]).toEqual([200, 0]);
});

test('S632: ranges read only the pieces that they need, and an ETag saves the download', async () => {
  const etag = (await get(file, { range: 'bytes=0-0' })).headers.get('etag') ?? '';
  const known = await get(file, { 'if-none-match': etag });
  expect([known.status, await known.text()]).toEqual([304, '']);
  const part = async (range: string, more: Record<string, string> = {}): Promise<unknown> => {
    queries.length = 0;
    const response = await get(file, { range, ...more });
    const content = new Uint8Array(await response.arrayBuffer());
    const from = Number(/^bytes (\d+)/.exec(response.headers.get('content-range') ?? '')?.[1] ?? 0);
    if (response.status !== 416) {
      expect(content).toEqual(bytes.slice(from, from + content.length));
    }
    const pieces = queries.filter((name) => name === 'file_piece').length;
    return [response.status, content.length, pieces];
  };
  expect(await part('bytes=0-9')).toEqual([206, 10, 1]);
  expect(await part('bytes=262140-262149')).toEqual([206, 10, 2]);
  expect(await part('bytes=-10')).toEqual([206, 10, 1]);
  expect(await part('bytes=1000000-')).toEqual([416, 0, 0]);
  expect(await part('bytes=0-9', { 'if-range': '"other"' })).toEqual([200, 1_000_000, 4]);
});

test('S632: a client that leaves does not disturb another one that reads slowly', async () => {
  const slow = await get(file);
  const left = await get(file);
  await left.body?.cancel();
  const parts: Uint8Array[] = [];
  for await (const part of slow.body ?? []) {
    parts.push(part);
    await get(file, { range: 'bytes=0-0' }).then((response) => response.arrayBuffer());
  }
  expect(new Uint8Array(Buffer.concat(parts))).toEqual(bytes);
});

test('S632: another user gets nothing', async () => {
  for (const path of [file, `snapshots/${snapshotId}/artifacts/a%2Fb.mp4`]) {
    const response = await get(path, { 'x-user': 'eve' });
    expect(response.status).toBe(404);
  }
});
