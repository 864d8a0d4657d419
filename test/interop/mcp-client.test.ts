import { mkdtemp, readFile, realpath, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { type App, type AppOptions, toolApproval, waymark } from '../../src/index.ts';
import { type McpSource, mcp } from '../../src/mcp/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/index.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { everything, files, scriptOf } from './mcp-servers.ts';

const apps: App[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await endProcesses();
});

function open(script: readonly ScriptStep[], options: AppOptions = {}): App {
  const app = waymark({ model: scriptedModel(script), ...options });
  apps.push(app);
  return app;
}

const call = (name: string, input: object = {}): ScriptStep => ({
  toolCalls: [{ name, input: input as never }],
});
/** Says what the last tool said. */
const repeat: ScriptStep = ({ messages }) => {
  const part = messages.at(-1)?.content[0];
  return JSON.stringify(part && 'toolResponse' in part ? part.toolResponse : part);
};

const folder = async (): Promise<string> =>
  realpath(await mkdtemp(join(tmpdir(), 'waymark-mcp-client-')));

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function overHttp(): Promise<McpSource> {
  const port = await freePort();
  const server = startProcess([scriptOf('server-everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) } as Record<string, string>,
  });
  await server.says(/listening on port/i);
  return mcp('everything', { url: `http://127.0.0.1:${port}/mcp` });
}

describe.each([
  ['stdio', async () => everything()],
  ['HTTP', overHttp],
])('server-everything over %s', (_, connect) => {
  test('calls tools: text, structured content, images and links', async () => {
    const app = open([
      call('everything_get-sum', { a: 2, b: 40 }),
      repeat,
      call('everything_get-structured-content', { location: 'New York' }),
      repeat,
      call('everything_get-tiny-image'),
      repeat,
      call('everything_get-resource-links', { count: 2 }),
      repeat,
    ]);
    const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [await connect()] });
    await app.ready();
    expect((await agent.run('Sum')).text).toMatch(/42/);
    const weather = JSON.parse((await agent.run('Weather')).text);
    expect(weather.output).toMatchObject({ temperature: expect.any(Number) });
    const image = JSON.parse((await agent.run('Image')).text);
    expect(image.content[0].media.url).toMatch(/^data:image\/png;base64,/);
    const links = JSON.parse((await agent.run('Links')).text);
    expect(links.content[0].data.resourceLink.uri).toMatch(/^demo:/);
  });

  test('streams progress, and stops a call when the turn is stopped', async () => {
    const app = open([
      call('everything_trigger-long-running-operation', { duration: 600, steps: 3000 }),
    ]);
    const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [await connect()] });
    const stop = new AbortController();
    const turn = agent.stream('Go', { signal: stop.signal });
    const seen: unknown[] = [];
    for await (const chunk of turn.stream) {
      const part = chunk.modelChunk?.content[0];
      if (part && 'toolResponse' in part) seen.push(part.toolResponse.output);
      if (seen.length === 2) stop.abort();
    }
    expect(seen.slice(0, 2)).toEqual([
      { progress: expect.any(Number), total: 3000 },
      { progress: expect.any(Number), total: 3000 },
    ]);
    expect((await turn.output).finishReason).toBe('aborted');
  });
});

test('a tool that must run as a task asks on the way, and shows what it does (S515, S516)', async () => {
  const name = 'everything_simulate-research-query';
  const app = open([call(name, { topic: 'python', ambiguous: true }), repeat]);
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [await overHttp()] });
  const turn = agent.stream('Go');
  const seen: unknown[] = [];
  for await (const { modelChunk } of turn.stream) {
    const part = modelChunk?.content[0];
    if (part && 'toolResponse' in part) seen.push(part.toolResponse.output);
  }
  expect(seen).toContainEqual({ message: expect.stringMatching(/\.\.\.$/) });
  const asked = await turn.output;
  const [question] = asked.interrupts;
  expect(question?.metadata).toMatchObject({ message: expect.stringContaining('python') });
  const resumed = { action: 'accept', content: { interpretation: 'snake' } };
  const { text } = await agent.resume(asked, question?.approve({ resumed }) ?? []);
  expect(text).toContain('Research Report: python (snake)');
});

test('a question of the server is answered after the process was killed, and only once', async () => {
  const path = join(await folder(), 'store.db');
  const script = fileURLToPath(new URL('./mcp-agent.ts', import.meta.url));
  const first = startProcess([script, path], { mayDie: true });
  const line = await first.take((text) => (text.startsWith('{') ? text : undefined));
  const { sessionId, finishReason } = JSON.parse(line);
  expect(finishReason).toBe('interrupted');
  await first.end('SIGKILL');

  const app = open([repeat], { store: sqliteStore(path) });
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [everything()] });
  const waiting = await agent.getSession(sessionId);
  const [question] = waiting?.interrupts ?? [];
  if (!question) throw new Error('There is no question.');
  expect(question.metadata).toMatchObject({
    message: 'Please provide inputs for the following fields:',
    schema: { type: 'object', required: ['name'] },
  });
  const answer = (content: object): Promise<{ readonly text: string }> =>
    agent.resume(
      { sessionId },
      question.approve({ resumed: { action: 'accept', content } as never }),
    );
  await expect(answer({ check: true })).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  const { text } = await answer({ name: 'Ada', integer: 7 });
  expect(text).toMatch(/- Name: Ada/);
  expect(text).toMatch(/- Favorite Integer: 7/);
  await expect(answer({ name: 'Eve' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
});

test('server-filesystem reads, and writes after an approval', async () => {
  const here = await folder();
  await writeFile(join(here, 'a.txt'), 'hello');
  const app = open([
    call('files_read_text_file', { path: join(here, 'a.txt') }),
    repeat,
    call('files_write_file', { path: join(here, 'b.txt'), content: 'new' }),
    repeat,
    call('files_read_text_file', { path: '/etc/hostname' }),
    repeat,
  ]);
  const agent = app.defineAgent({
    name: 'chat',
    system: 'Help.',
    tools: [files(here).except('move_file')],
    use: [toolApproval(({ name }) => name.startsWith('files_write'))],
  });
  expect((await agent.run('Read')).text).toMatch(/hello/);
  const asked = await agent.run('Write');
  const [approval] = asked.interrupts;
  if (!approval) throw new Error('There is no interrupt.');
  await expect(readFile(join(here, 'b.txt'))).rejects.toThrow();
  await agent.resume(asked, approval.approve());
  expect(await readFile(join(here, 'b.txt'), 'utf8')).toBe('new');
  expect((await agent.run('Read')).text).toMatch(/Access denied/);
});

test('a server ends with the process that started it, also after kill -9', async () => {
  const path = join(await folder(), 'store.db');
  const script = fileURLToPath(new URL('./mcp-agent.ts', import.meta.url));
  const parent = startProcess([script, path], { mayDie: true });
  await parent.take((text) => (text.startsWith('{') ? text : undefined));
  const children = await childrenOf(parent.pid);
  expect(children.length).toBeGreaterThan(0);
  await parent.end('SIGKILL');
  await eventually(() => children.every((pid) => !isAlive(pid)), 'the server ends');
});

async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
