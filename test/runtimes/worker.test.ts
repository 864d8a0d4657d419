import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { readEvents } from '../server/kit.ts';
import { linkPackage } from './commands.ts';

// Its types are those of another version of Node.
const { Miniflare } = createRequire(import.meta.url)('miniflare') as {
  readonly Miniflare: new (
    options: object,
  ) => { readonly ready: Promise<URL>; dispose(): Promise<void> };
};

const source = fileURLToPath(new URL('./worker', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'waymark-worker-'));
const script = join(folder, 'worker.js');
let worker: InstanceType<typeof Miniflare>;
let url: string;

beforeAll(async () => {
  linkPackage();
  const wrangler = fileURLToPath(new URL('./node_modules/.bin/wrangler', import.meta.url));
  const args = ['deploy', '--dry-run', '--minify', '--outdir', folder];
  execFileSync(wrangler, args, {
    cwd: source,
    stdio: 'pipe',
    env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' },
  });
  worker = new Miniflare({
    modules: true,
    modulesRoot: folder,
    scriptPath: script,
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat'],
    durableObjects: { AGENTS: { className: 'Agents', useSQLite: true } },
  });
  url = String(await worker.ready).replace(/\/$/, '');
}, 120_000);
afterAll(async () => {
  await worker?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe.each([
  ['a Worker', {}],
  ['a Durable Object', { 'x-object': 'yes' }],
])('in %s', (_, headers: Record<string, string>) => {
  const agent = (who = 'ann') =>
    client({ url, agent: 'chat', headers: { authorization: who, ...headers } });

  test('a turn calls a tool and goes on in the next request', async () => {
    const first = await agent().run('What is the weather?');
    expect(first.text).toBe('It says ["sunny in Rome"].');
    const next = await agent().run('And now?', { sessionId: first.sessionId });
    expect(next.text).toBe('hello there');
    const session = await agent().getSession(first.sessionId);
    expect(session?.state?.messages).toHaveLength(6);
  });

  test('text is streamed', async () => {
    const turn = agent().stream('count');
    const texts: string[] = [];
    for await (const text of turn.textStream) texts.push(text);
    expect(texts.join('')).toBe('1 2 3 4');
    expect((await turn.output).finishReason).toBe('stop');
  });

  test('an interrupt is answered in a later request', async () => {
    const asked = await agent().run('book it');
    expect(asked.interrupts.map(({ toolName }) => toolName)).toEqual(['book']);
    const done = await agent().resume(asked, (request) => request.approve());
    expect(done.text).toBe('It says ["room 7 is booked"].');
  });

  test('a turn whose client has left goes on, and so does a background run', async () => {
    const message = { role: 'user' as const, content: [{ text: 'slow' }] };
    const response = await fetch(`${url}/agents/chat/turns`, {
      method: 'POST',
      headers: { accept: 'text/event-stream', authorization: 'ann', ...headers },
      body: JSON.stringify({ input: { message } }),
    });
    // Leaving the loop cancels the body, which ends the connection.
    let left = '';
    for await (const { data } of readEvents(response)) {
      left = data.turnStart.snapshotId;
      break;
    }
    const { snapshotId: detached = '' } = await agent().run({ message, detach: true });
    for (const snapshotId of [left, detached]) {
      expect((await agent().wait(snapshotId)).status).toBe('succeeded');
    }
  });

  test('S552 requests wait for and watch a run that another request started', async () => {
    const message = { role: 'user' as const, content: [{ text: 'slow' }] };
    const { snapshotId = '' } = await agent().run({ message, detach: true });
    const watch = async (): Promise<string> => {
      let text = '';
      for await (const event of agent().watch(snapshotId)) {
        if (event.type !== 'chunk') continue;
        const parts = event.chunk.modelChunk?.content ?? [];
        text += parts.map((part) => ('text' in part ? part.text : '')).join('');
      }
      return text;
    };
    const [ended, ...texts] = await Promise.all([agent().wait(snapshotId), watch(), watch()]);
    expect(ended.status).toBe('succeeded');
    expect(texts).toEqual(['1 2 3 4', '1 2 3 4']);
  });

  test('requests at the same time do not disturb each other, nor see each other', async () => {
    const turns = await Promise.all(
      Array.from({ length: 20 }, (_, n) => agent(`user-${n % 4}`).run(n % 2 ? 'count' : 'weather')),
    );
    for (const [n, { text, sessionId }] of turns.entries()) {
      expect(text).toBe(n % 2 ? '1 2 3 4' : 'It says ["sunny in Rome"].');
      expect(await agent('stranger').getSession(sessionId)).toBeUndefined();
    }
  });
});

test('the bundle has no Node server and no WebSocket library', () => {
  const text = readFileSync(script, 'utf8');
  expect(text).not.toContain('WebSocketServer');
  expect(text.match(/from ?"node:(http|https|net)"/g) ?? []).toEqual([]);
});
