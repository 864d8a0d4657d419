import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type App, memoryStore, WaymarkError, waymark } from '../../src/index.ts';
import type { LogEntry } from '../../src/server/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { get, post, startServer, userInput } from './kit.ts';

const secret = 'connect ECONNREFUSED 10.1.2.3 key=sk-123';
const leaks = /ECONNREFUSED|10\.1\.2\.3|sk-123|secret-folder|errors\.test\.ts|"stack"|"cause"/;

/** What agents throw, by the name of the agent. */
const thrown: Readonly<Record<string, () => unknown>> = {
  error: () => new Error(secret),
  text: () => secret,
  object: () => ({ reason: secret }),
  ours: () =>
    new WaymarkError('FAILED_PRECONDITION', 'You have no credit left.', {
      cause: new Error(secret),
    }),
  masked: () => new WaymarkError('UNAVAILABLE', secret, { publicMessage: 'Try again later.' }),
};

let folder: string;
let server: Awaited<ReturnType<typeof startServer>>;
const entries: LogEntry[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'secret-folder-'));
  server = await startServer({ app: await createApp(), log: (entry) => entries.push(entry) });
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function createApp(): Promise<App> {
  // It looks for no runs to take over: stores that cannot be opened would be reported for that as well.
  const app = waymark({ store: memoryStore(), work: false });
  for (const [name, make] of Object.entries(thrown)) {
    const model = app.defineModel({ name: `model-${name}` }, () => {
      throw make();
    });
    app.defineAgent({ name: `model-${name}`, model });
    app.defineCustomAgent({ name: `custom-${name}` }, (session) =>
      session.run(() => {
        throw make();
      }),
    );
  }
  const notADatabase = join(folder, 'app.db');
  await writeFile(
    notADatabase,
    'This is not a database, although it is long enough to be one.\n'.repeat(40),
  );
  const model = app.defineModel({ name: 'fine' }, async () => ({
    message: { role: 'model', content: [{ text: 'fine' }] },
    finishReason: 'stop',
  }));
  app.defineAgent({ name: 'sqlite', model, store: sqliteStore(notADatabase) });
  app.defineAgent({ name: 'file', model, store: fileStore(join(notADatabase, 'inside')) });
  const inner = memoryStore();
  const claim = async (): Promise<never> => {
    throw new Error(`cannot open ${folder}/x`);
  };
  const failing = { ...inner, runs: { ...must(inner.runs), claim } };
  app.defineAgent({ name: 'driver', model, store: failing });
  return app;
}

/** What a client of each protocol hears of one turn, as it came. */
const clients: Readonly<Record<string, (agent: string) => Promise<string>>> = {
  json: async (agent) =>
    (await post(`${server.url}/agents/${agent}/turns`, { input: userInput('x') })).text(),
  sse: async (agent) =>
    (
      await post(
        `${server.url}/agents/${agent}/turns`,
        { input: userInput('x') },
        { accept: 'text/event-stream' },
      )
    ).text(),
  websocket: async (agent) => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/agents/${agent}/connect`);
    await once(socket, 'open');
    let heard = '';
    socket.on('message', (data) => {
      heard += String(data);
    });
    for (const frame of [
      { type: 'init' },
      { type: 'input', input: userInput('x') },
      { type: 'close' },
    ]) {
      socket.send(JSON.stringify(frame));
    }
    await once(socket, 'close');
    return heard;
  },
  genkit: async (agent) =>
    (await post(`${server.url}/genkit/${agent}`, { data: userInput('x') })).text(),
  'genkit stream': async (agent) =>
    (await post(`${server.url}/genkit/${agent}?stream=true`, { data: userInput('x') })).text(),
  ui: async (agent) =>
    (
      await post(`${server.url}/ui/${agent}`, {
        id: crypto.randomUUID(),
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'x' }] }],
      })
    ).text(),
  reflection: async (agent) =>
    (
      await post(`${server.url}/api/runAction`, { key: `/agent/${agent}`, input: userInput('x') })
    ).text(),
  'reflection stream': async (agent) =>
    (
      await post(`${server.url}/api/runAction?stream=true`, {
        key: `/agent/${agent}`,
        input: userInput('x'),
      })
    ).text(),
  background: async (agent) => {
    const accepted = await post(`${server.url}/agents/${agent}/turns`, {
      input: { ...userInput('x'), detach: true },
    });
    const said = await accepted.text();
    const { snapshotId } = JSON.parse(said);
    if (snapshotId === undefined) return said;
    const snapshots = `${server.url}/agents/${agent}/snapshots`;
    const events = await (await fetch(`${snapshots}/${snapshotId}/events`)).text();
    return said + events + JSON.stringify(await get(`${snapshots}/${snapshotId}`));
  },
};

const agents = [
  ...Object.keys(thrown).flatMap((name) => [`model-${name}`, `custom-${name}`]),
  'sqlite',
  'file',
  'driver',
];

describe.each(Object.keys(clients))('over %s', (client) => {
  test.each(agents)('S51 S144 S146 what %s throws is logged once, and not sent', async (agent) => {
    entries.length = 0;
    const heard = await must(clients[client])(agent);
    expect(heard).not.toMatch(leaks);
    expect(heard).toMatch(/failed|error|status/i);
    if (agent.endsWith('ours')) expect(heard).toContain('You have no credit left.');
    if (agent.endsWith('masked')) expect(heard).toContain('Try again later.');
    const failures = entries.filter(({ msg }) => msg === 'failed');
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatchObject({ level: 'error', error: { message: expect.any(String) } });
    if (!agent.endsWith('ours')) expect(JSON.stringify(failures)).toMatch(leaks);
  });
});

test('S146 the entry of a failed turn says where, with the message and the stack', async () => {
  entries.length = 0;
  const { sessionId } = JSON.parse(await must(clients.json)('custom-error'));
  expect(entries.find(({ msg }) => msg === 'failed')).toMatchObject({
    level: 'error',
    agent: 'custom-error',
    sessionId,
    runId: expect.any(String),
    turnIndex: 0,
    phase: 'turn',
    error: { name: 'Error', message: secret, stack: expect.stringContaining('errors.test.ts') },
  });
});

test('S141 S51 failed snapshots are read redacted', async () => {
  const { sessionId } = JSON.parse(await must(clients.json)('custom-error'));
  const url = `${server.url}/agents/custom-error/sessions/${sessionId}`;
  const { items } = await get(`${url}/snapshots?includeOrphaned=true`);
  expect(items).toMatchObject([{ status: 'failed', error: { status: 'INTERNAL' } }]);
  expect(JSON.stringify([items, await get(url), await get(`${server.url}/healthz`)])).not.toMatch(
    leaks,
  );
});

function must<Value>(value: Value | undefined): Value {
  return value ?? expect.fail('expected a value');
}
