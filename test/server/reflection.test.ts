import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { handler } from '../../src/server/index.ts';
import { createTestApp, get, post, startServer, userInput } from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let api: string;

beforeAll(async () => {
  server = await startServer();
  api = `${server.url}/api`;
});
afterAll(() => server.close());

test('lists actions, and agents under the keys that Genkit’s tools look for', async () => {
  expect(await (await fetch(`${api}/__health`)).text()).toBe('OK');
  const actions = await get(`${api}/actions`);
  expect(actions['/agent/chat']).toMatchObject({
    key: '/agent/chat',
    name: 'chat',
    metadata: { agent: { stateManagement: 'server', abortable: true } },
  });
  expect(Object.keys(actions)).toEqual(
    expect.arrayContaining(['/agent-snapshot/chat', '/agent-abort/chat', '/tool/weather']),
  );
  expect(actions['/tool/weather'].inputSchema).toMatchObject({ type: 'object' });
  expect(await get(`${api}/envs`)).toEqual(['dev']);
  expect((await post(`${api}/notify`, { telemetryServerUrl: 'http://localhost:1' })).status).toBe(
    200,
  );
});

test('runs a tool, and an agent with its companions', async () => {
  const run = async (
    key: string,
    input: unknown,
  ): Promise<{ result: Record<string, unknown>; telemetry: object }> =>
    (await post(`${api}/runAction`, { key, input })).json();
  expect(await run('/tool/weather', { city: 'Oslo' })).toMatchObject({
    result: 'Sunny in Oslo',
    telemetry: { traceId: expect.any(String) },
  });
  const { result } = await run('/agent/chat', userInput('hello'));
  expect(result).toMatchObject({ finishReason: 'stop' });
  const { snapshotId } = result;
  expect(await run('/agent-snapshot/chat', { snapshotId })).toMatchObject({
    result: { status: 'completed' },
  });
  expect(await run('/agent-abort/chat', { snapshotId })).toMatchObject({
    result: { status: 'completed' },
  });
});

test('streams one JSON per line, the last one being the result or the error', async () => {
  const lines = async (body: object): Promise<Record<string, unknown>[]> => {
    const text = await (await post(`${api}/runAction?stream=true`, body)).text();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  };
  const streamed = await lines({
    key: '/agent/chat',
    input: userInput('count 3'),
    init: { sessionId: 'r' },
  });
  expect(streamed[0]).toMatchObject({ modelChunk: { content: [{ text: '0 ' }] } });
  expect(streamed.at(-1)).toMatchObject({ result: { sessionId: 'r' }, telemetry: {} });
  const failed = await lines({ key: '/agent/chat', input: {} });
  expect(failed).toEqual([
    { error: { code: 3, message: expect.any(String), details: expect.any(Object) } },
  ]);
});

test('a running action is cancelled by its trace id', async () => {
  const response = await post(`${api}/runAction?stream=true`, {
    key: '/agent/chat',
    input: userInput('hang'),
  });
  const traceId = response.headers.get('x-genkit-trace-id');
  const text = response.text();
  expect((await post(`${api}/cancelAction`, { traceId })).status).toBe(200);
  expect(await text).toContain('"finishReason":"aborted"');
  expect((await post(`${api}/cancelAction`, { traceId })).status).toBe(404);
});

test('is there for clients on this machine only', async () => {
  const foreign = await rawGet(server.port, '/api/actions', { host: 'evil.example' });
  expect(foreign).toMatchObject({ status: 403, body: { status: 'PERMISSION_DENIED' } });
  const page = await fetch(`${api}/actions`, { headers: { origin: 'https://evil.example' } });
  expect(page.status).toBe(403);
  const behindProxy = await fetch(`${api}/actions`, { headers: { 'x-forwarded-for': '10.0.0.7' } });
  expect(behindProxy.status).toBe(403);
  // A handler that does not know where a request came from does not answer it.
  const mounted = handler(createTestApp());
  expect((await mounted(new Request('http://localhost/api/actions'))).status).toBe(403);
  const incoming = { socket: { remoteAddress: '10.0.0.7' } };
  const far = await mounted(new Request('http://localhost/api/actions'), {
    incoming: incoming as never,
  });
  expect(far.status).toBe(403);
  const none = handler(createTestApp(), { reflection: false });
  expect((await none(new Request('http://localhost/api/actions'))).status).toBe(404);
  // Where there is auth, there may be others: it must be asked for.
  const guarded = handler(createTestApp(), { auth: () => ({ principal: 'ann' }) });
  expect((await guarded(new Request('http://localhost/api/actions'))).status).toBe(404);
});

test('a caller cannot name another owner', async () => {
  const guarded = await startServer({ auth: () => ({ principal: 'ann' }), reflection: true });
  try {
    const { result } = await (
      await post(`${guarded.url}/api/runAction`, { key: '/agent/chat', input: userInput('hi') })
    ).json();
    const key = '/snapshot-store/chat/getSnapshot';
    const body = { key, input: { snapshotId: result.snapshotId }, context: { owner: 'bob' } };
    expect(await (await post(`${guarded.url}/api/runAction`, body)).json()).toMatchObject({
      result: { snapshotId: result.snapshotId },
    });
  } finally {
    await guarded.close();
  }
});

test('a note tells Genkit’s tools where the server is, while it is there', async () => {
  const project = await mkdtemp(join(tmpdir(), 'waymark-'));
  try {
    const noted = await startServer({ genkitProject: project });
    const folder = join(project, '.genkit', 'runtimes');
    const [name = ''] = await readdir(folder);
    expect(name).toMatch(new RegExp(`^${process.pid}-${noted.port}-\\d+\\.json$`));
    const note = JSON.parse(await readFile(join(folder, name), 'utf8'));
    expect(note.reflectionServerUrl).toBe(`http://localhost:${noted.port}`);
    expect((await fetch(`${noted.url}/api/__health?id=${note.id}`)).status).toBe(200);
    await noted.close();
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await rm(project, { recursive: true });
  }
});

// fetch does not let a caller choose the Host header.
function rawGet(
  port: number,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number | undefined; body: unknown }> {
  return new Promise((resolve, reject) => {
    request({ port, path, headers, host: '127.0.0.1' }, async (response) => {
      let text = '';
      for await (const piece of response) text += piece;
      resolve({ status: response.statusCode, body: JSON.parse(text) });
    })
      .on('error', reject)
      .end();
  });
}

test('S688 with auth, the context of an action is the one of auth; without it, that of the caller', async () => {
  const guarded = await startServer({
    reflection: true,
    auth: () => ({ principal: 'ann', context: { role: 'reader' } }),
  });
  const contextAt = async (url: string, key: string, input: object): Promise<string> => {
    const context = { role: 'admin', paid: true, owner: 'bob', init: {}, context: { paid: true } };
    return await (await post(`${url}/api/runAction`, { key, input, context })).text();
  };
  for (const [key, input] of [
    ['/agent/chat', userInput('who am i')],
    ['/tool/whoami', {}],
  ] as const) {
    const seen = await contextAt(guarded.url, key, input);
    expect(seen).toContain('reader');
    expect(seen).not.toMatch(/admin|paid|bob/);
    expect(await contextAt(server.url, key, input)).toContain('admin');
  }
  await guarded.close();
});
