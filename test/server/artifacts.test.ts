import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { type RunningServer, serve } from 'waymark/server';

const image = Uint8Array.from({ length: 300 }, (_, at) => at % 256);
const large = Buffer.from(Uint8Array.from({ length: 1_000_000 }, (_, at) => (at * 31) % 251));
let server: RunningServer;
let snapshotId = '';

beforeAll(async () => {
  const app = waymark({ store: memoryStore() });
  const agent = app.defineCustomAgent({ name: 'files' }, async (session) => {
    await session.run(async () => {
      const url = `data:image/png;base64,${Buffer.from(image).toString('base64')}`;
      session.addArtifacts(
        { name: 'grüße/a.txt', parts: [{ text: 'grüße, 🌍' }] },
        { name: 'b.png', parts: [{ media: { url } }] },
        {
          name: 'large.bin',
          parts: [{ media: { url: `data:;base64,${large.toString('base64')}` } }],
        },
        { name: 'c', parts: [{ media: { url: 'data:text/html\r\nx: y,%3Cb%3E' } }] },
        { name: 'two', parts: [{ text: 'a' }, { text: 'b' }] },
        { name: 'far', parts: [{ media: { url: 'https://example.com/x.png' } }] },
      );
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

test('S253: an artifact is its bytes, of the head and of a snapshot', async () => {
  const text = await get(`sessions/s/artifacts/${encodeURIComponent('grüße/a.txt')}`);
  expect(text.status).toBe(200);
  expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(text.headers.get('content-disposition')).toMatch(/^attachment; filename\*=UTF-8''gr%C3/);
  expect(text.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await text.text()).toBe('grüße, 🌍');
  const file = await get(`snapshots/${snapshotId}/artifacts/b.png`);
  expect(file.headers.get('content-type')).toBe('image/png');
  expect(new Uint8Array(await file.arrayBuffer())).toEqual(image);
  const odd = await get('sessions/s/artifacts/c');
  expect(odd.headers.get('content-type')).toBe('application/octet-stream');
  expect(await odd.text()).toBe('<b>');
});

test('S253: ranges and ETags', async () => {
  const whole = await get('sessions/s/artifacts/b.png');
  const etag = whole.headers.get('etag') ?? '';
  expect(whole.headers.get('accept-ranges')).toBe('bytes');
  const known = await get('sessions/s/artifacts/b.png', { 'if-none-match': `"x", W/${etag}` });
  expect([known.status, await known.text()]).toEqual([304, '']);
  const part = async (range: string, more: Record<string, string> = {}): Promise<unknown> => {
    const response = await get('sessions/s/artifacts/b.png', { range, ...more });
    const { length } = new Uint8Array(await response.arrayBuffer());
    return [response.status, length, response.headers.get('content-range')];
  };
  expect(await part('bytes=0-9')).toEqual([206, 10, 'bytes 0-9/300']);
  expect(await part('bytes=290-999')).toEqual([206, 10, 'bytes 290-299/300']);
  expect(await part('bytes=290-')).toEqual([206, 10, 'bytes 290-299/300']);
  expect(await part('bytes=-10')).toEqual([206, 10, 'bytes 290-299/300']);
  expect(await part('bytes=300-')).toEqual([416, 0, 'bytes */300']);
  expect(await part('bytes=9-0')).toEqual([200, 300, null]);
  expect(await part('bytes=0-1,4-5')).toEqual([200, 300, null]);
  expect(await part('lines=0-1')).toEqual([200, 300, null]);
  expect(await part('bytes=0-9', { 'if-range': etag })).toEqual([206, 10, 'bytes 0-9/300']);
  expect(await part('bytes=0-9', { 'if-range': '"other"' })).toEqual([200, 300, null]);
});

test('S557: large data arrives in pieces, whole or in a range', async () => {
  const whole = await get('sessions/s/artifacts/large.bin');
  expect(whole.headers.get('content-length')).toBe('1000000');
  expect(Buffer.from(await whole.arrayBuffer()).equals(large)).toBe(true);
  const part = await get('sessions/s/artifacts/large.bin', { range: 'bytes=1-700000' });
  expect(part.headers.get('content-length')).toBe('700000');
  expect(Buffer.from(await part.arrayBuffer()).equals(large.subarray(1, 700_001))).toBe(true);
});

test('S253: what is not there, not one content, or of another owner is refused', async () => {
  expect((await get('sessions/s/artifacts/none')).status).toBe(404);
  expect((await get('sessions/none/artifacts/b.png')).status).toBe(404);
  for (const name of ['two', 'far']) {
    const response = await get(`sessions/s/artifacts/${name}`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('Read it from the snapshot');
  }
  expect((await get('sessions/s/artifacts/b.png', { 'x-user': 'bob' })).status).toBe(404);
  const path = `snapshots/${snapshotId}/artifacts/b.png`;
  expect((await get(path, { 'x-user': 'bob' })).status).toBe(404);
});
