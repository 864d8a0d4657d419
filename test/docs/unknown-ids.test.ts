/** Runs through the table of the reference: what each call does with an unknown id, in process and over HTTP. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentApi, memoryStore, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { type RunningServer, serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/reference.md'), 'utf8');
const [, table = ''] =
  /### Unknown ids\n[\s\S]*?\n\| --- \| --- \|\n([\s\S]*?)\n\n/.exec(page) ?? [];
const rows = table.split('\n').flatMap((line) => {
  const [, calls = '', outcome = ''] = /^\| (.*) \| (.*) \|$/.exec(line) ?? [];
  return [...calls.matchAll(/`([^`]+)`/g)].map(([, call = '']) => [call, outcome] as const);
});

const id = 'unknown';
const sessionId = 'unknown session';
const known = { snapshotId: '' };
const next = (events: AsyncIterable<unknown>) => events[Symbol.asyncIterator]().next();
const calls: Readonly<Record<string, (agent: AgentApi) => Promise<unknown>>> = {
  getSnapshot: (agent) => agent.getSnapshot(id),
  getSession: (agent) => agent.getSession(id),
  abort: (agent) => agent.abort(id),
  'attach(id).abort': (agent) => agent.attach(id).abort(),
  'attach(id).status': (agent) => agent.attach(id).status(),
  listSnapshots: (agent) => agent.listSnapshots(id),
  deleteSession: (agent) => agent.deleteSession(id),
  'run({ sessionId })': (agent) => agent.run('hi', { sessionId: 'new run' }),
  'stream({ sessionId })': (agent) => agent.stream('hi', { sessionId: 'new stream' }).output,
  'start({ sessionId })': (agent) => agent.start('hi', { sessionId: 'new start' }),
  'chat({ sessionId })': (agent) => agent.chat({ sessionId: 'new chat' }).send('hi'),
  'run({ snapshotId })': (agent) => agent.run('hi', { snapshotId: id }),
  'run({ from })': (agent) => agent.run('hi', { from: id }),
  wait: (agent) => agent.wait(id),
  watch: (agent) => next(agent.watch(id)),
  'attach(id).wait': (agent) => agent.attach(id).wait(),
  'attach(id).watch': (agent) => next(agent.attach(id).watch()),
  restore: (agent) => agent.restore(id),
  planUndo: (agent) => agent.planUndo(id),
  fork: (agent) => agent.fork(id),
  label: (agent) => agent.label(id, 'good'),
  listFiles: (agent) => agent.listFiles(id),
  openFile: (agent) => agent.openFile(id, 'notes.md'),
  diff: (agent) => agent.diff(known, id),
  retryRun: (agent) => agent.retryRun(id),
  updateSession: (agent) => agent.updateSession(id, { title: 'x' }),
  'resume({ sessionId }, answer)': (agent) =>
    agent.resume({ sessionId }, (request) => request.approve()),
};

/** What a call did, in the words of the table. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    const value = await call;
    if (value === undefined || value === false) return `\`${value}\``;
    const { items, sessionId: session } = value as { items?: unknown[]; sessionId?: string };
    if (items?.length === 0) return 'an empty page';
    return session?.startsWith('new ') ? 'a new session with this id' : JSON.stringify(value);
  } catch (error) {
    return `rejects with \`${(error as { status: string }).status}\``;
  }
}

const app = waymark({
  model: scriptedModel({ patterns: [], otherwise: 'Hello.' }),
  store: memoryStore(),
  onError: () => {},
});
app.defineAgent({ name: 'chat' });
let server: RunningServer;
beforeAll(async () => {
  server = await serve(app, { port: 0, log: () => {} });
  known.snapshotId = String((await app.agent('chat').run('hi')).snapshotId);
});
afterAll(async () => {
  await server.close();
  await app.close();
});

test('S471 the table has every call that takes an id', () => {
  expect(rows.map(([call]) => call).sort()).toEqual(Object.keys(calls).sort());
});

describe.each(['in process', 'over HTTP'])('S471 an unknown id, %s', (place) => {
  test.each(rows)('%s: %s', async (call, outcome) => {
    const agent: AgentApi =
      place === 'in process'
        ? (app.agent('chat') as AgentApi)
        : (createClient({ url: server.url }).agent('chat') as AgentApi);
    expect(await outcomeOf(calls[call]?.(agent) ?? Promise.resolve())).toBe(outcome);
  });
});
