/** The line of the caller in the stack of each error: of calls in the process and through the client, at once and after a wait. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, type App, memoryStore, tool, waymark } from 'waymark';
import { createClient, type RemoteAgent } from 'waymark/client';
import { type RunningServer, serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { firstFrame } from './support/first-frame.ts';

type AnyAgent = Agent | RemoteAgent;
const wrong = (value: unknown): never => value as never;
const id = '00000000-0000-7000-8000-000000000000';

const hold = Promise.withResolvers<void>();
let app: App;
let server: RunningServer;
let remote: RemoteAgent;
const agents: Record<string, AnyAgent> = {};

beforeAll(async () => {
  const model = scriptedModel({
    patterns: [[/fail/, { error: new Error('on purpose') }]],
    otherwise: 'Hi.',
  });
  app = waymark({ model, store: sqliteStore(':memory:'), onError: () => {} });
  agents.sqlite = app.defineAgent({ name: 'chat' });
  app.defineCustomAgent({ name: 'held' }, (session) => session.run(async () => await hold.promise));
  server = await serve(app, { port: 0, log: () => {} });
  remote = createClient({ url: server.url, reconnect: false }).agent('chat');
  agents.remote = remote;
  const inMemory = waymark({ model, store: memoryStore(), onError: () => {} });
  agents.memory = inMemory.defineAgent({ name: 'chat' });
});
afterAll(async () => {
  hold.resolve();
  await server.close();
  await app.close();
});

async function read(chunks: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of chunks);
}

/** A mistake for each public call of an agent. */
const calls: [string, (agent: AnyAgent) => Promise<unknown>][] = [
  ['run, empty', async (agent) => await agent.run('')],
  ['run, unknown option', async (agent) => await agent.run('x', wrong({ sesionId: 's' }))],
  ['run, an id that is none', async (agent) => await agent.run('x', { sessionId: wrong(1) })],
  ['run, from an unknown snapshot', async (agent) => await agent.run('x', { from: id })],
  [
    'run, a snapshot and a state',
    async (agent) => await agent.run('x', { from: id, state: wrong({}) }),
  ],
  ['run, a state', async (agent) => await agent.run('x', { state: wrong({ custom: 1 }) })],
  ['run, a head that moved', async (agent) => await agent.run('x', { sessionId: 'a', ifHead: id })],
  ['run, a failing model', async (agent) => await agent.run('fail')],
  ['run, an answer to nothing', async (agent) => await agent.run({ resume: { respond: [] } })],
  ['runText', async (agent) => await agent.runText('')],
  ['start', async (agent) => await agent.start('x', { from: id })],
  ['resume', async (agent) => await agent.resume({ sessionId: 'none' } as never, [])],
  ['stream, its chunks', async (agent) => await read(agent.stream('x', { from: id }).stream)],
  ['stream, its text', async (agent) => await read(agent.stream('x', { from: id }).textStream)],
  ['stream, its output', async (agent) => await agent.stream('x', { from: id }).output],
  [
    'stream, in a loop',
    async (agent) => {
      for await (const _ of agent.stream('x', { sessionId: 'a', ifHead: id }).stream);
    },
  ],
  ['chat.send', async (agent) => await agent.chat({ from: id }).send('x')],
  ['chat.stream', async (agent) => await agent.chat({ from: id }).stream('x').output],
  ['chat.start', async (agent) => await agent.chat({ from: id }).start('x')],
  ['chat.steer', async (agent) => await agent.chat().steer('x')],
  ['chat.resume', async (agent) => await agent.chat({ sessionId: 'none' }).resume([])],
  ['streamBidi, send', async (agent) => await agent.streamBidi().send({})],
  ['streamBidi, output', async (agent) => await agent.streamBidi({ snapshotId: id }).output()],
  [
    'streamBidi, receive',
    async (agent) => await read(agent.streamBidi({ snapshotId: id }).receive()),
  ],
  ['streamBidi, detach', async (agent) => await agent.streamBidi({ snapshotId: id }).detach({})],
  ['getSnapshot', async (agent) => await agent.getSnapshot({} as never)],
  ['getSession', async (agent) => await agent.getSession(wrong(1))],
  ['listSnapshots', async (agent) => await agent.listSnapshots(wrong(1))],
  ['listSessions', async (agent) => await agent.listSessions({ cursor: 'x' })],
  ['listRuns', async (agent) => await agent.listRuns(wrong({ limit: 'x' }))],
  ['updateSession', async (agent) => await agent.updateSession('none', { title: 'x' })],
  ['deleteSession', async (agent) => await agent.deleteSession(wrong(1))],
  ['wait', async (agent) => await agent.wait(id)],
  ['watch', async (agent) => await read(agent.watch(id))],
  ['steer', async (agent) => await agent.steer(id, 'x')],
  ['abort', async (agent) => await agent.abort(wrong(1))],
  ['retryRun', async (agent) => await agent.retryRun(id)],
  ['restore', async (agent) => await agent.restore(id)],
  ['planUndo', async (agent) => await agent.planUndo(id)],
  ['fork', async (agent) => await agent.fork(id)],
  ['edit', async (agent) => await agent.edit(id, {})],
  ['listFiles', async (agent) => await agent.listFiles({} as never)],
  ['diff', async (agent) => await agent.diff(id, id)],
  ['label', async (agent) => await agent.label(id, 'x')],
  ['handle.wait', async (agent) => await agent.attach(id).wait()],
  ['handle.steer', async (agent) => await agent.attach(id).steer('x')],
  ['handle.abort', async (agent) => await agent.attach(wrong(1)).abort()],
  ['handle.watch', async (agent) => await read(agent.attach(id).watch())],
];

describe.each(['memory', 'sqlite', 'remote'])(
  'the first frame outside of Waymark is the caller: %s',
  (which) => {
    test.each(calls)('S715 %s', async (_, call) => {
      const frame = await firstFrame(async () => await call(agents[which] as AnyAgent));
      expect(frame).toContain('stacks.test.ts');
    });
  },
);

describe('the first frame outside of Waymark is the caller', () => {
  const schema = z.object({ n: z.number() });
  test.each<[string, () => unknown]>([
    ['waymark', () => waymark(wrong({ modle: 1 }))],
    ['defineAgent', () => app.defineAgent(wrong({ name: 'x', tool: [] }))],
    [
      'defineAgent, initial state',
      () => app.defineAgent({ name: 'x', state: schema, initialState: wrong({}) }),
    ],
    ['defineCustomAgent', () => app.defineCustomAgent({ name: 'x' }, wrong(1))],
    [
      'defineTool',
      () =>
        app.defineTool(wrong({ name: 'x', description: '', input: { n: z.number() } }), () => 1),
    ],
    ['definePrompt', () => app.definePrompt(wrong({ name: 'x', output: 1 }))],
    ['defineModel', () => app.defineModel({ name: 'x' }, wrong(1))],
    ['tool', () => tool(wrong({ name: 'x' }), () => 1)],
    ['agent', () => app.agent('none')],
    [
      'ready',
      async () => {
        const own = waymark();
        own.defineAgent({ name: 'a' });
        await own.ready();
      },
    ],
    ['generate', async () => await app.generate('fail')],
    ['generate, unknown model', async () => await app.generate({ prompt: 'x', model: 'none' })],
    ['generateStream', async () => await app.generateStream('fail').response],
    ['generateStream, chunks', async () => await read(app.generateStream('fail').stream)],
    ['listInterrupts', async () => await app.listInterrupts({ cursor: 'x' })],
    ['work', async () => await app.work()],
    ['close', async () => await app.close(wrong({ deadline: 1 }))],
    ['serve', async () => await serve(app, { port: server.port, log: () => {} })],
    ['a store', async () => await sqliteStore('/nowhere/at/all.db').open?.()],
    ['createClient', () => createClient(wrong({}))],
    [
      'a busy session',
      async () => {
        const held = app.agent('held');
        const turn = held.stream('x', { sessionId: 'busy' });
        for await (const chunk of turn.stream) if (chunk.turnStart) break;
        await held.run('y', { sessionId: 'busy' });
      },
    ],
    [
      'a turn that another turn waits for',
      async () => {
        const [first] = await Promise.all([app.agent('chat').run('x', { from: id })]);
        return first;
      },
    ],
  ])('%s', async (_, call) => {
    expect(await firstFrame(call)).toContain('stacks.test.ts');
  });
});
