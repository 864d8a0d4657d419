import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/time.ts';
import { type App, waymark } from '../../src/index.ts';
import { type McpSource, mcp } from '../../src/mcp/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { rawServer } from './support/raw.ts';

const apps: App[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function open(...tools: McpSource[]): App {
  const app = waymark({ model: scriptedModel([]), onError: () => {} });
  apps.push(app);
  app.defineAgent({ name: 'chat', system: 'Help.', tools });
  return app;
}

const stateOf = (source: McpSource) => source.status().map(({ state }) => state);
const scope = () => ({ context: {}, signal: new AbortController().signal, report: () => {} });

test('S550 a source tells whether it is connected, with its tools; after close it is idle', async () => {
  const raw = rawServer('raw');
  const app = open(raw.only('echo'), raw.only('remove'));
  expect(stateOf(raw)).toEqual(['idle']);
  expect(app.toolSources()).toEqual([]);
  const ready = app.ready();
  await expect.poll(() => stateOf(raw)).toEqual(['connecting']);
  await ready;
  // Selections share one connection, and are listed once, with all tools of the server.
  expect(app.toolSources().map(({ name }) => name)).toEqual(['raw']);
  const [status] = app.toolSources()[0]?.status?.() ?? [];
  expect(status).toMatchObject({ state: 'connected' });
  expect(status?.lastError).toBeUndefined();
  const names = status?.tools?.map(({ name }) => name);
  expect(names).toContain('raw_echo');
  expect(names).toContain('raw_slow');
  await raw.close();
  expect(raw.status()).toMatchObject([{ state: 'idle' }]);
  expect(raw.status()[0]?.lastError).toBeUndefined();
});

test('S550 a server that is down is failed, with the reason and the time of the next attempt', async () => {
  const clock = { ...systemClock, now: () => 1_000 };
  const down = rawServer('down', 'exit', { clock });
  await open(down).ready();
  const [failed] = down.status();
  expect(failed).toMatchObject({ state: 'failed', tools: undefined });
  expect(String(failed?.lastError?.error)).toContain('The secret key is missing.');
  expect(failed?.lastError?.at).toBe(1_000);
  expect(failed?.retryAt).toBeGreaterThan(1_000);
});

test('S550 a server that crashes is not connected any more, until it is used again', async () => {
  const raw = rawServer('raw');
  const [tool] = (await raw.list(scope())).filter(({ name }) => name === 'raw_crash');
  const context = {
    ...scope(),
    ref: 'a',
    checkpoint: async (_: string, fn: () => unknown) => fn(),
  };
  await expect(tool?.run({}, context as never)).rejects.toThrow('closed the connection');
  await expect.poll(() => stateOf(raw)).toEqual(['idle']);
  expect(String(raw.status()[0]?.lastError?.error)).toContain('closed the connection');
  await raw.list(scope());
  expect(stateOf(raw)).toEqual(['connected']);
  await raw.close();
});

test('S550 where each user has a connection, each has a state', async () => {
  const user = (context: Readonly<Record<string, unknown>>) => context.user as string | undefined;
  const source = mcp('crm', { url: 'http://127.0.0.1:9/mcp', user });
  expect(source.status()).toEqual([]);
  const asAnn = { ...scope(), context: { user: 'ann' } };
  await expect(source.list(asAnn)).rejects.toThrow('MCP server "crm"');
  expect(source.status()).toMatchObject([{ user: 'ann', state: 'failed' }]);
});
