import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { type App, type Json, toolApproval, waymark } from '../../src/index.ts';
import { type McpSource, mcp } from '../../src/mcp/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/index.ts';
import { rawServer } from './support/raw.ts';

const apps: App[] = [];
const close = async (): Promise<void> => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
};
afterEach(close);

const script = fileURLToPath(new URL('./support/modern-server.ts', import.meta.url));
const modern = (journal = ''): McpSource =>
  mcp('modern', { command: process.execPath, args: [script, journal] });

function open(path: string, steps: readonly ScriptStep[], tools: readonly McpSource[]) {
  const app = waymark({ store: sqliteStore(path), model: scriptedModel(steps) });
  apps.push(app);
  return app.defineAgent({
    name: 'chat',
    system: 'Help.',
    tools,
    use: [toolApproval(({ name }) => name === 'modern_deploy')],
  });
}

const call = (...names: string[]): ScriptStep => ({
  toolCalls: names.map((name) => ({ name, input: { env: 'test' } })),
});
const repeat: ScriptStep = ({ messages }) =>
  (messages.at(-1)?.content ?? [])
    .map((part) => ('toolResponse' in part ? part.toolResponse?.output : ''))
    .map((output) => (typeof output === 'string' ? output : JSON.stringify(output)))
    .join('|');
const accept = (content: Json): { resumed: Json } => ({ resumed: { action: 'accept', content } });

test('S318 questions of a server of 2026 are asked one by one, after the approval, over restarts of the app', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-mcp-'));
  const journal = join(folder, 'journal');
  const path = join(folder, 'store.db');
  const first = open(path, [call('modern_deploy')], [modern(journal)]);
  const asked = await first.run('Go');
  const { sessionId } = asked;
  const [approval] = asked.interrupts;
  expect(approval?.metadata).toMatchObject({ approval: { tool: 'modern_deploy' } });
  const confirm = await first.resume(asked, approval?.approve() ?? []);
  expect(confirm.interrupts[0]?.metadata).toMatchObject({
    message: 'Deploy to test?',
    schema: { properties: { sure: { type: 'boolean' } } },
  });
  await close();

  const second = open(path, [repeat], [modern(journal)]);
  const waiting = (await second.getSession(sessionId ?? ''))?.interrupts[0];
  if (!waiting) throw new Error('There is no question.');
  const wrong = second.resume(confirm, waiting.approve(accept({ sure: 'perhaps' })));
  await expect(wrong).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  await expect(second.resume(confirm, waiting.approve())).rejects.toThrow(/action: 'accept'/);
  const why = await second.resume(confirm, waiting.approve(accept({ sure: true })));
  expect(why.interrupts[0]?.metadata).toMatchObject({ message: 'Why?' });
  const done = await second.resume(why, why.interrupts[0]?.approve(accept({ why: 'now' })) ?? []);
  expect(JSON.parse(done.text)).toEqual([
    'test',
    { action: 'accept', content: { sure: true } },
    { action: 'accept', content: { why: 'now' } },
    'state of test',
  ]);
  expect(await readFile(journal, 'utf8')).toBe('deployed test\n');
  const again = second.resume(why, why.interrupts[0]?.approve(accept({ why: 'again' })) ?? []);
  await expect(again).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
});

test('S318 a declined question reaches the server; the answers to a server of 2025 are kept for the next call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-mcp-'));
  const agent = open(join(folder, 'store.db'), [call('raw_ask'), repeat], [rawServer('raw')]);
  const one = await agent.run('Go');
  expect(one.interrupts[0]?.metadata).toMatchObject({ message: 'Your name?' });
  const two = await agent.resume(one, one.interrupts[0]?.approve(accept({ value: 'Ada' })) ?? []);
  expect(two.interrupts[0]?.metadata).toMatchObject({ message: 'Your age?' });
  const declined = { resumed: { action: 'decline' } };
  const done = await agent.resume(two, two.interrupts[0]?.approve(declined) ?? []);
  expect(done.text).toBe('{"action":"accept","content":{"value":"Ada"}} {"action":"decline"}');
});

test('S318 a question of a server of 2025 during several calls is asked of none of them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-mcp-'));
  const agent = open(
    join(folder, 'store.db'),
    [call('raw_ask', 'raw_ask'), repeat, call('raw_ask'), repeat],
    [rawServer('raw', '', { timeout: 5_000 })],
  );
  const output = await agent.run('Go');
  expect(output.interrupts).toEqual([]);
  expect(output.text).toMatch(/Several calls are running.*\|.*Several calls are running/);
  expect((await agent.run('Go')).interrupts).toHaveLength(1);
});

test('S318 a tool with an output schema may ask', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-mcp-'));
  const agent = open(join(folder, 'store.db'), [call('modern_measure'), repeat], [modern()]);
  const asked = await agent.run('Go');
  const [question] = asked.interrupts;
  expect(question?.metadata).toMatchObject({ message: 'How much?' });
  const done = await agent.resume(asked, question?.approve(accept({ size: '7' })) ?? []);
  expect(done.text).toBe('{"size":"7"}');
});

test('resources and prompts of a server are used in messages', async () => {
  const server = modern();
  const model = scriptedModel(['Read.', 'Hello Ada.']);
  const app = waymark({ model });
  apps.push(app);
  const page = server.resource('page', 'docs://{page}');
  await app.generate({
    messages: [{ role: 'user', content: [{ resource: { uri: 'docs://intro' } }] }],
    resources: [page],
    tools: [server],
  });
  expect(model.requests[0]?.messages).toMatchObject([
    { role: 'user', content: [{ text: 'The text of intro' }] },
  ]);
  await app.generate({ messages: await server.prompt('greet', { name: 'Ada' }) });
  expect(model.requests[1]?.messages).toMatchObject([
    { role: 'user', content: [{ text: 'Greet Ada.' }] },
  ]);
  await expect(server.prompt('nothing')).rejects.toThrow(/MCP server "modern" refused the prompt/);
});
