import { mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { model, waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { openTraceFile } from '../../src/server/studio/open.ts';
import { createSpanRecorder } from '../../src/server/studio/span-recorder.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-calls-'));
  await mkdir(join(folder, 'studio'));
  await writeFile(join(folder, 'studio', 'index.html'), '<!doctype html><title>Studio</title>');
});
afterAll(() => rm(folder, { recursive: true }));

async function openServer(name: string, { auth = false, key = '' } = {}) {
  const encryption = key === '' ? {} : { encryption: { key } };
  const app = waymark({ store: sqliteStore(join(folder, `${name}.db`), encryption) });
  const convert = app.defineTool(
    { name: 'convert', description: 'Converts.', input: z.object({ amount: z.number() }) },
    ({ amount }) => ({ amount, currency: 'USD' }),
  );
  const agent = app.defineAgent({
    name: 'money',
    model: scriptedModel(
      {
        patterns: [[/^convert/, { toolCalls: [{ name: 'convert', input: { amount: 5 } }] }]],
        afterTools: () => 'It is 5 dollars.',
        otherwise: 'Say convert.',
      },
      { name: 'script' },
    ),
    system: 'Answer in euros.',
    tools: [convert],
    config: { temperature: 0.2, headers: { authorization: 'Bearer secret-key' } },
  });
  const broken = app.defineAgent({
    name: 'broken',
    model: model({ name: 'down' }, () => Promise.reject(new Error('No route to the model.'))),
  });
  const server = await serve(app, {
    port: 0,
    log: () => {},
    studio: join(folder, 'studio'),
    studioData: join(folder, name),
    ...(auth && { auth: () => ({ principal: 'ann' }) }),
  });
  const read = async (path: string, owner?: string) => {
    const headers = owner === undefined ? {} : { 'x-waymark-owner': owner };
    return await (await fetch(`${server.url}/studio/${path}`, { headers })).json();
  };
  return {
    agent,
    broken,
    url: server.url,
    /** The recorded model calls of a session. */
    async calls(sessionId: string, owner?: string) {
      const { items } = await read(`traces?session=${sessionId}`, owner);
      const chats = items.filter(({ hasContent }: { hasContent?: true }) => hasContent);
      return await Promise.all(
        chats.map(async ({ spanId }: { spanId: string }) => {
          const { content } = await read(`calls?session=${sessionId}&span=${spanId}`, owner);
          return content;
        }),
      );
    },
    file: () => readFile(join(folder, name, 'traces.jsonl'), 'utf8').catch(() => ''),
    async [Symbol.asyncDispose]() {
      await server.close();
      await app.close();
    },
  };
}

test('S480 each model call is recorded with its request and response', async () => {
  await using server = await openServer('full');
  const { sessionId } = await server.agent.runText('convert 5');
  const [first, second, ...more] = await server.calls(sessionId);
  expect(more).toEqual([]);
  expect(first.model).toBe('script');
  expect(first.request.messages.map(({ role }: { role: string }) => role)).toEqual([
    'system',
    'user',
  ]);
  expect(first.request.tools[0].inputSchema.properties).toEqual({ amount: { type: 'number' } });
  expect(first.request.config.temperature).toBe(0.2);
  expect(first.response.message.content[0].toolRequest.name).toBe('convert');
  expect(JSON.stringify(second.request.messages.at(-1))).toContain('USD');
  expect(second.response.finishReason).toBe('stop');
});

test('S480 a model call that failed shows what was sent; credentials in headers are not recorded', async () => {
  await using server = await openServer('failed');
  await expect(server.broken.runText('hello')).rejects.toThrow();
  const { items } = await server.broken.listSessions();
  const calls = await server.calls(items[0]?.sessionId ?? '');
  expect(calls[0].request.messages[0].content[0].text).toBe('hello');
  expect(calls[0].response).toBeUndefined();
  const { sessionId } = await server.agent.runText('hi');
  const [call] = await server.calls(sessionId);
  expect(call.request.config.headers).toEqual({ authorization: '(not recorded)' });
});

test('S481 recorded calls survive a restart, and go with their session', async () => {
  let kept = '';
  let deleted = '';
  {
    await using server = await openServer('restart');
    kept = (await server.agent.runText('convert one')).sessionId;
    deleted = (await server.agent.runText('convert two')).sessionId;
  }
  await using server = await openServer('restart');
  expect(await server.calls(kept)).toHaveLength(2);
  expect(await server.calls(deleted)).toHaveLength(2);
  await server.agent.deleteSession(deleted);
  expect(await server.calls(deleted)).toEqual([]);
  await expect.poll(server.file).not.toContain('convert two');
  expect(await server.file()).toContain('convert one');
  expect(await server.calls(kept)).toHaveLength(2);
});

test('S481 calls of sessions that another process deleted are dropped at the next start', async () => {
  let sessionId = '';
  {
    await using server = await openServer('elsewhere');
    ({ sessionId } = await server.agent.runText('convert one'));
  }
  const store = sqliteStore(join(folder, 'elsewhere.db'));
  const app = waymark({ store });
  await app.defineAgent({ name: 'money', model: scriptedModel([]) }).deleteSession(sessionId);
  await app.close();
  await using server = await openServer('elsewhere');
  await expect.poll(server.file).not.toContain('convert one');
});

test('S481 calls of a session with an owner survive a restart', async () => {
  let sessionId = '';
  {
    await using server = await openServer('owner');
    ({ sessionId } = await server.agent.runText('convert one', { owner: 'ann' }));
  }
  {
    await using server = await openServer('owner');
    // Closing waits until deleted sessions were looked for.
    expect(await server.calls(sessionId, 'ann')).toHaveLength(2);
  }
  await using server = await openServer('owner');
  expect(await server.calls(sessionId, 'ann')).toHaveLength(2);
  await server.agent.deleteSession(sessionId, { owner: 'ann' });
  await expect.poll(server.file).not.toContain('convert one');
});

test('S481 the file is written once for all sessions that are gone', async () => {
  const span = (n: number) => ({
    traceId: `t${n}`,
    spanId: `s${n}`,
    name: 'chat x',
    attributes: { 'waymark.session.id': `session${n}` },
  });
  const restored = [1, 2, 3].map((n) => ({ span: span(n), startedAt: n, endedAt: n }));
  const replace = vi.fn();
  const log = { append() {}, replace };
  const recorder = createSpanRecorder({ clock: fakeClock(), log, restored });
  // This id is in use again.
  recorder.started({ ...span(4), attributes: span(1).attributes });
  recorder.dropRestored(new Set(['session1', 'session2']));
  expect(replace).toHaveBeenCalledOnce();
  const left = ['session1', 'session2', 'session3'].flatMap((id) =>
    recorder.ofSession(id, undefined),
  );
  expect(left.map(({ spanId }) => spanId)).toEqual(['s4', 's3']);
});

test('S481 of several rewrites that wait for the disk, only the last one is made', async () => {
  const path = join(folder, 'rewrites', 'traces.jsonl');
  const { file } = await openTraceFile(path, { onProblem() {} });
  let texts = 0;
  const span = (text: string) => ({
    span: { traceId: 't', spanId: text, name: 'chat x', attributes: {} },
    startedAt: 1,
    get content() {
      texts += 1;
      return JSON.stringify(text);
    },
  });
  const first = span('first');
  file.append(first, []);
  const spans = Array.from({ length: 20 }, () => span('kept'));
  texts = 0;
  for (const each of spans) file.replace([first, each]);
  // Only their length was asked for.
  expect(texts).toBe(40);
  file.append(span('last'), []);
  await file.close();
  expect(texts).toBe(43);
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).content)).toEqual(['first', 'kept', 'last']);
});

test('S481 a session that is deleted after a failed write leaves the file; a new folder is ignored by git', async () => {
  const path = join(folder, 'again', 'traces.jsonl');
  const problems: unknown[] = [];
  const { file } = await openTraceFile(path, { onProblem: (error) => problems.push(error) });
  const of = (spanId: string) => ({
    span: { traceId: spanId, spanId, name: 'chat x', attributes: {} },
    startedAt: 1,
    endedAt: 2,
  });
  file.append(of('deleted'), []);
  await file.close();
  expect(await readFile(join(folder, 'again', '.gitignore'), 'utf8')).toBe('*\n');

  // A folder in the place of the file makes the write fail.
  await rename(path, `${path}.kept`);
  await mkdir(path);
  file.append(of('lost'), []);
  await file.close();
  expect(problems).toHaveLength(1);
  await rmdir(path);
  await rename(`${path}.kept`, path);
  file.append(of('not written'), []);
  await file.close();
  expect(await readFile(path, 'utf8')).toContain('deleted');

  file.replace([of('lost')]);
  file.append(of('next'), []);
  await file.close();
  const again = await openTraceFile(path, { onProblem() {} });
  expect(again.restored.map(({ span: { spanId } }) => spanId)).toEqual(['lost', 'next']);

  await writeFile(join(folder, 'again', '.gitignore'), 'mine');
  await again.file.close();
  expect(await readFile(join(folder, 'again', '.gitignore'), 'utf8')).toBe('mine');
});

test('S481 with an encrypted store, recorded calls are not written to disk', async () => {
  await using server = await openServer('encrypted', { key: '00'.repeat(32) });
  const { sessionId } = await server.agent.runText('convert 5');
  expect(await server.calls(sessionId)).toHaveLength(2);
  await expect(readdir(join(folder, 'encrypted'))).rejects.toThrow('ENOENT');
});

test('S482 with auth nothing is recorded', async () => {
  await using server = await openServer('principals', { auth: true });
  const { sessionId } = await server.agent.runText('convert 5');
  const response = await fetch(`${server.url}/studio/calls?session=${sessionId}&span=x`);
  expect(response.status).toBe(404);
  expect(await server.file()).toBe('');
});

test('S482 another session does not open a call', async () => {
  await using server = await openServer('apart');
  const one = await server.agent.runText('convert 5');
  const two = await server.agent.runText('convert 6');
  const traces = await fetch(`${server.url}/studio/traces?session=${one.sessionId}`);
  const { items } = await traces.json();
  const { spanId } = items.find(({ hasContent }: { hasContent?: true }) => hasContent);
  const of = (session: string) =>
    fetch(`${server.url}/studio/calls?session=${session}&span=${spanId}`);
  expect((await of(one.sessionId)).status).toBe(200);
  expect((await of(two.sessionId)).status).toBe(404);
});

test('S483 the number of spans and the size of calls are bounded, in memory and in the file', async () => {
  const path = join(folder, 'bounds', 'traces.jsonl');
  const problems: unknown[] = [];
  const { file } = await openTraceFile(path, {
    onProblem: (error) => problems.push(error),
    maxLength: 20_000,
  });
  const clock = fakeClock();
  const recorder = createSpanRecorder({ clock, log: file, most: 10, maxContent: 5_000 });
  for (let n = 0; n < 300; n++) {
    const span = {
      traceId: 't',
      spanId: `s${n}`,
      name: 'chat x',
      attributes: { 'waymark.session.id': 'a' },
    };
    recorder.started(span);
    recorder.ended({ ...span, content: { text: 'x'.repeat(900) } });
  }
  await file.close();
  expect(problems).toEqual([]);
  const left = recorder.ofSession('a', undefined).map(({ spanId }) => spanId);
  expect(left).toEqual(['s295', 's296', 's297', 's298', 's299']);
  expect((await readFile(path, 'utf8')).length).toBeLessThan(20_000);
  const again = await openTraceFile(path, { onProblem() {} });
  expect(again.restored.at(-1)?.span.spanId).toBe('s299');

  const huge = { traceId: 't', spanId: 'huge', name: 'chat x', attributes: {} };
  const large = createSpanRecorder({ clock });
  const named = { ...huge, attributes: { 'waymark.session.id': 'a' } };
  large.started(named);
  const messages = Array.from({ length: 3_000 }, () => ({ content: 'y'.repeat(5_000) }));
  large.ended({ ...named, content: { request: { messages } } });
  const text = large.contentOf('a', undefined, 'huge') ?? '';
  expect(text.length).toBeLessThan(1_000_000);
  expect(JSON.parse(text).omitted).toBe(2_950);
});

test('S481 a file with half a line is read up to it; a span without an end says so', async () => {
  const path = join(folder, 'torn.jsonl');
  const span = { traceId: 't', spanId: 'a', name: 'turn 0', attributes: {} };
  await writeFile(path, `${JSON.stringify({ format: 1, span, startedAt: 5 })}\n{"format":1,"sp`);
  const { restored, file } = await openTraceFile(path, { onProblem() {} });
  expect(restored).toHaveLength(1);
  expect(restored[0]?.endedAt).toBe(5);
  expect(restored[0]?.span.error?.message).toBe('The server stopped before this ended.');
  const next = { span: { ...span, spanId: 'b' }, startedAt: 6, endedAt: 7 };
  file.append(next, []);
  await file.close();
  const again = await openTraceFile(path, { onProblem() {} });
  expect(again.restored.map(({ span: { spanId } }) => spanId)).toEqual(['a', 'b']);
});
