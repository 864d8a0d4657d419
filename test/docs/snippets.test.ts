/** Runs every snippet of the documentation; each holds its own assertions. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { serve } from 'waymark/server';
import { sse } from '../providers/wire-server.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const root = resolve(import.meta.dirname, '../..');

/** Named one by one, so that the compiler checks each of them. */
const snippets: Readonly<Record<string, () => Promise<object>>> = {
  'hello.ts': () => import('../../docs/snippets/hello.ts'),
  'readme.ts': () => import('../../docs/snippets/readme.ts'),
  'getting-started.ts': () => import('../../docs/snippets/getting-started.ts'),
  'a2a.ts': () => import('../../docs/snippets/a2a.ts'),
  'installation.ts': () => import('../../docs/snippets/installation.ts'),
  'multi-tenant.ts': () => import('../../docs/snippets/multi-tenant.ts'),
  'agents.ts': () => import('../../docs/snippets/agents.ts'),
  'custom-agents.ts': () => import('../../docs/snippets/custom-agents.ts'),
  'cost-and-limits.ts': () => import('../../docs/snippets/cost-and-limits.ts'),
  'telemetry.ts': () => import('../../docs/snippets/telemetry.ts'),
  'prices.ts': () => import('../../docs/snippets/prices.ts'),
  'editors.ts': () => import('../../docs/snippets/editors.ts'),
  'workspaces.ts': () => import('../../docs/snippets/workspaces.ts'),
  'skills.ts': () => import('../../docs/snippets/skills.ts'),
  'memory.ts': () => import('../../docs/snippets/memory.ts'),
  'state.ts': () => import('../../docs/snippets/state.ts'),
  'time-travel.ts': () => import('../../docs/snippets/time-travel.ts'),
  'mcp-tools.ts': () => import('../../docs/snippets/mcp-tools.ts'),
  'interrupts.ts': () => import('../../docs/snippets/interrupts.ts'),
  'undo.ts': () => import('../../docs/snippets/undo.ts'),
  'background.ts': () => import('../../docs/snippets/background.ts'),
  'schedules.ts': () => import('../../docs/snippets/schedules.ts'),
  'stores.ts': () => import('../../docs/snippets/stores.ts'),
  'serving.ts': () => import('../../docs/snippets/serving.ts'),
  'runtimes.ts': () => import('../../docs/snippets/runtimes.ts'),
  'mcp-server.ts': () => import('../../docs/snippets/mcp-server.ts'),
  'openai.ts': () => import('../../docs/snippets/openai.ts'),
  'ag-ui.ts': () => import('../../docs/snippets/ag-ui.ts'),
  'client.ts': () => import('../../docs/snippets/client.ts'),
  'deploying.ts': () => import('../../docs/snippets/deploying.ts'),
  'serverless.ts': () => import('../../docs/snippets/serverless.ts'),
  'replay.ts': () => import('../../docs/snippets/replay.ts'),
  'survive-crashes.ts': () => import('../../docs/snippets/survive-crashes.ts'),
  'coming-from.ts': () => import('../../docs/snippets/coming-from.ts'),
};

const here = process.cwd();
const folder = mkdtempSync(join(tmpdir(), 'waymark-docs-'));
let postgres: TestPostgres;
const openai = startOpenAi();

beforeAll(async () => {
  postgres = await startPostgres();
  process.env.DATABASE_URL = postgres.connectionString;
  process.env.OPENAI_API_KEY = 'not a real one';
  process.env.OPENAI_BASE_URL = await openai.url;
  // Snippets keep their sessions in files beside them, as a reader would.
  process.chdir(folder);
  vi.spyOn(console, 'log').mockImplementation(() => {});
  vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
});

afterAll(async () => {
  vi.restoreAllMocks();
  process.chdir(here);
  openai.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('every snippet runs', () => {
  test.each(Object.keys(snippets))('%s', async (name) => {
    await expect(snippets[name]?.()).resolves.toBeDefined();
  });

  test('react.tsx', async () => {
    const { Chat, Timeline } = await import('../../docs/snippets/react.tsx');
    const { app, chat } = await import('../../docs/snippets/react-agent.ts');
    const { sessionId } = await chat.runText('hello');
    const server = await serve(app, { port: 0, log: () => {} });
    const { url } = server;
    expect(renderToString(createElement(Chat, { url }))).toContain('aria-label="Message"');
    expect(renderToString(createElement(Timeline, { url, sessionId }))).toBe('<ol></ol>');
    await server.close();
  });

  test('and none is left out', () => {
    const files = readdirSync(join(root, 'docs/snippets')).sort();
    // The driver is run by the suite of the stores.
    const elsewhere = ['react-agent.ts', 'react.tsx', 'sql-driver.ts'];
    expect(files).toEqual([...Object.keys(snippets), ...elsewhere].sort());
  });
});

/** Speaks as much of OpenAI's wire as the README needs: it books the hotel that the user names, and writes the plan. */
function startOpenAi() {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += String(piece);
    const { input } = JSON.parse(body) as {
      input: { role?: string; type?: string; content?: { text?: string }[] }[];
    };
    const asked = input.findLastIndex(({ role }) => role === 'user');
    const [, hotel] = /Book the (\w+)/.exec(input[asked]?.content?.[0]?.text ?? '') ?? [];
    const results = input.slice(asked).filter(({ type }) => type === 'function_call_output');
    const call = [
      { name: 'book', args: { hotel } },
      { name: 'write', args: { path: 'plan.md', content: `Hotel: ${hotel}\n` } },
    ][hotel === undefined ? 2 : results.length];
    response.setHeader('content-type', 'text/event-stream');
    const item =
      call === undefined
        ? { type: 'message', id: 'msg_1' }
        : { type: 'function_call', id: 'fc_1', call_id: `call_${call.name}`, name: call.name };
    const args = JSON.stringify(call?.args);
    const delta =
      call === undefined
        ? { type: 'response.output_text.delta', delta: 'Of course.' }
        : { type: 'response.function_call_arguments.delta', delta: args };
    const done = call === undefined ? item : { ...item, arguments: args, status: 'completed' };
    response.end(
      sse([
        { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'gpt-5' } },
        { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
        { ...delta, output_index: 0, item_id: item.id },
        { type: 'response.output_item.done', output_index: 0, item: done },
        { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
      ]),
    );
  });
  const url = new Promise<string>((listening) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      listening(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1`);
    });
  });
  return { url, close: () => server.close() };
}
