import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type App, agentTool, memoryStore, type Store, waymark } from 'waymark';
import {
  type RecordedSession,
  replay,
  type SessionSource,
  scriptedModelFrom,
  type TurnReport,
} from 'waymark/replay';
import { sqliteStore } from 'waymark/sqlite';
import type { SessionExport } from 'waymark/store';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-replay-'));
  closers.push(() => rm(folder, { recursive: true }));
  return folder;
}

const script = scriptedModel({
  patterns: [
    [/^call (\w+)/, ([, name = '']) => ({ toolCalls: [{ name, input: { message: 'hello' } }] })],
    [/^fail/, { text: 'half', error: new Error('on purpose') }],
    [/^stop/, { chunks: ['half'], hang: true }],
    [/.*/, ([text]) => `You said ${text}.`],
  ],
  afterTools: (_, results) => `Results: ${JSON.stringify(results)}`,
  otherwise: '',
});

function open(store: Store = memoryStore()): App {
  const app = waymark({ model: script, store, onError: () => {} });
  closers.push(() => app.close());
  return app;
}

const recorded = {
  with: (session: RecordedSession) => ({ model: scriptedModelFrom(session) }),
};
const paths = (turns: readonly TurnReport[]): string[] =>
  turns.flatMap(({ divergences }) => divergences.map(({ path }) => path));

async function exportOf(app: App, agent: string, id: string): Promise<SessionExport> {
  const document = await (app.store as Store).maintenance?.exportSession({ agent }, id);
  if (document === undefined) expect.fail('nothing was exported');
  return document;
}

test('S429 failed turns replay; stopped ones are skipped, and say why; detached ones replay in the foreground', async () => {
  const app = open();
  const chat = app.defineAgent({ name: 'chat' });
  const { sessionId } = await chat.run('hello');
  await chat.run('fail', { sessionId, throwOnError: false });
  const stop = new AbortController();
  const turn = chat.stream('stop', { sessionId, signal: stop.signal });
  for await (const { modelChunk } of turn.stream) if (modelChunk) stop.abort();
  await turn.output;
  await (await chat.start('later', { sessionId })).wait();
  const report = await replay(app, { sessions: sessionId, ...recorded });
  expect(report.turns.map(({ replayed }) => replayed.finishReason)).toEqual([
    'stop',
    'failed',
    'stop',
  ]);
  expect(paths(report.turns)).toEqual([]);
  expect(report.skipped).toEqual([
    expect.objectContaining({ reason: expect.stringContaining('stopped before it ended') }),
  ]);
  // The change makes the failed turn succeed.
  const better = scriptedModel({
    patterns: [
      [/fail/, 'Fine.'],
      [/.*/, ([text]) => `You said ${text}.`],
    ],
    otherwise: '',
  });
  const changed = await replay(app, { sessions: sessionId, with: { model: better } });
  expect(changed.turns[1]?.divergences).toMatchObject([
    { path: '/finishReason', recorded: 'failed', replayed: 'stop' },
    { path: '/text', recorded: 'half', replayed: 'Fine.' },
  ]);
});

test('S429 a turn that rewrote its history is replayed; custom agents run only if they may', async () => {
  const app = open();
  const custom = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(({ message }) => {
      const [first = message] = session.messages.slice(-1);
      if (first) session.setMessages([first, { role: 'model', content: [{ text: 'rewritten' }] }]);
    }),
  );
  const { sessionId } = await custom.run('one');
  await custom.run('two', { sessionId });
  const skipped = await replay(app, { sessions: sessionId });
  expect(skipped.turns).toEqual([]);
  expect(skipped.skipped[0]?.reason).toContain('"custom" is a custom agent');
  const report = await replay(app, { sessions: sessionId, customAgents: 'run' });
  expect(report.turns.map(({ replayed }) => replayed.text)).toEqual(['rewritten', 'rewritten']);
  expect(paths(report.turns)).toEqual([]);
});

test('S612 S613 a custom agent is replayed with another model; a replay never says that an unused change makes no difference', async () => {
  const app = open();
  const plain = app.defineCustomAgent({ name: 'plain' }, (session) =>
    session.run(async () => {
      const { messages } = await app.generate({ messages: session.messages });
      session.addMessages(...messages);
    }),
  );
  const fixed = app.defineCustomAgent({ name: 'fixed' }, (session) =>
    session.run(async () => {
      const { messages } = await app.generate({ model: script, messages: session.messages });
      session.addMessages(...messages);
    }),
  );
  const other = scriptedModel(['Something else.']);
  const run = (sessions: string | undefined, changes: object) =>
    replay(app, { sessions: String(sessions), customAgents: 'run', with: changes });
  const { sessionId: changeable } = await plain.run('one');
  expect((await run(changeable, { model: other })).turns).toMatchObject([
    { replayed: { text: 'Something else.' }, divergences: [{ path: '/text' }] },
  ]);
  expect(other.requests).toHaveLength(1);
  expect((await run(changeable, { model: script })).divergent).toBe(0);
  const { sessionId: rigid } = await fixed.run('one');
  expect(await run(rigid, { model: other })).toMatchObject({
    divergent: 1,
    turns: [{ divergences: [{ kind: 'model', path: '/model' }] }],
  });
  expect(other.requests).toHaveLength(1);
  for (const change of [{ system: 'Be rude.' }, { config: { temperature: 1 } }, { tools: [] }]) {
    const { turns, skipped } = await run(changeable, change);
    expect(turns).toEqual([]);
    expect(skipped[0]?.reason).toContain(
      `a custom agent, which has no \`${Object.keys(change)[0]}\` to change`,
    );
  }
});

test('S614 a replay with an unknown model fails, and says which models there are', async () => {
  const app = open();
  app.defineModel({ name: 'fast' }, async () => ({
    message: { role: 'model', content: [{ text: 'Fast.' }] },
    finishReason: 'stop',
  }));
  const { sessionId = '' } = await app.defineAgent({ name: 'chat' }).run('one');
  const run = (model: string | (() => string)) =>
    replay(app, { sessions: sessionId, with: { model } });
  await expect(run('fats')).rejects.toThrow(/No model "fats".*fast/);
  await expect(run(() => 'fats')).rejects.toMatchObject({ status: 'NOT_FOUND' });
  expect((await run('fast')).turns).toMatchObject([{ replayed: { text: 'Fast.' } }]);
});

test('S621 a replay of nothing is not the same as its recording, and an unknown agent is NOT_FOUND', async () => {
  const store = memoryStore();
  const app = open(store);
  const { sessionId } = await app.defineAgent({ name: 'chat' }).run('one');
  const run = (sessions: SessionSource) => replay(app, { sessions, ...recorded });
  expect(await run({ agent: 'chat' })).toMatchObject({ same: true, sessions: 1 });
  expect(await run('unknown')).toMatchObject({
    same: false,
    turns: [],
    skipped: [{ sessionId: 'unknown', reason: 'No such session.' }],
  });
  const nothing = { same: false, sessions: 0, turns: [], skipped: [], divergent: 0 };
  expect(await run({ agent: 'chat', query: 'nowhere' })).toMatchObject(nothing);
  for (const ids of [undefined, [sessionId]]) {
    await expect(run({ agent: 'chta', ...(ids && { ids }) })).rejects.toMatchObject({
      status: 'NOT_FOUND',
      message: 'No agent "chta" is defined. Did you mean "chat"? Defined: chat.',
    });
  }
  // The recordings of an agent that was removed are skipped with a reason, and can be replayed with another app.
  const later = open(store);
  const removed = await replay(later, { sessions: { agent: 'chat' } });
  expect(removed).toMatchObject({
    same: false,
    skipped: [{ sessionId, reason: 'The app has no agent "chat".' }],
  });
  const changes = { with: { app }, sessions: { agent: 'chat' } };
  expect(await replay(later, changes)).toMatchObject({ same: true });
});

test('S429 sub-agents replay as tools, and their own sessions by themselves; live ones run on the copy', async () => {
  const store = memoryStore();
  const app = open(store);
  const helper = app.defineAgent({ name: 'helper' });
  const lead = app.defineAgent({ name: 'lead', tools: [agentTool(helper)] });
  const { sessionId } = await lead.run('call helper');
  const sessionsOf = async (agent: string) =>
    (await store.timeline?.listSessions({ agent }))?.items.length;
  const parent = await replay(app, { sessions: sessionId, ...recorded });
  expect([parent.turns.length, paths(parent.turns)]).toEqual([1, []]);
  const all = await replay(app, { sessions: {}, ...recorded });
  expect(all.turns.map(({ agent }) => agent).toSorted()).toEqual(['helper', 'lead']);
  expect(paths(all.turns)).toEqual([]);
  const live = await replay(app, { sessions: sessionId, ...recorded, tools: 'live' });
  expect(paths(live.turns)).toEqual([]);
  expect([await sessionsOf('helper'), await sessionsOf('lead')]).toEqual([1, 1]);
});

test('S429 a tool or schema that changed is reported where it matters', async () => {
  const app = open();
  const state = z.object({ n: z.number() });
  const count = app.defineTool({ name: 'count', description: '', state }, (_, { session }) => {
    session.updateCustom((draft) => void draft.n++);
    return session.custom.n;
  });
  const chat = app.defineAgent({ name: 'chat', state, initialState: { n: 0 }, tools: [count] });
  const { sessionId } = await chat.run('call count');
  await chat.run('hello', { sessionId });
  const document = await exportOf(app, 'chat', sessionId);
  const next = open();
  next.defineAgent({ name: 'chat', state: z.object({ n: z.string() }), initialState: { n: '' } });
  const found = await replay(next, {
    sessions: document,
    with: { model: scriptedModelFrom(document) },
  });
  expect(
    found.turns.map(({ turnIndex, divergences }) => [turnIndex, divergences[0]?.path]),
  ).toEqual([
    [0, '/toolCalls/0/output'],
    [1, '/finishReason'],
  ]);
  expect(found.turns[1]?.replayed.error?.message).toContain('/n');
  const missing = await replay(open(), { sessions: document });
  expect(missing.skipped).toEqual([{ sessionId, reason: 'The app has no agent "chat".' }]);
});

test('S429 sessions from before tool effects were recorded replay, and the missing effects are reported', async () => {
  const app = open();
  const note = app.defineTool({ name: 'note', description: '' }, (_, { session }) => {
    session.setCustom({ noted: true });
    session.addArtifacts({ name: 'a', parts: [{ text: 'x' }] });
    return 'ok';
  });
  const chat = app.defineAgent({ name: 'chat', tools: [note], initialState: {} });
  const { sessionId } = await chat.run('call note');
  const document = await exportOf(app, 'chat', sessionId);
  const { fromSessionExport } = await import('../../src/session/import-session.ts');
  const { toSessionExport } = await import('../../src/session/export-session.ts');
  const { withoutRecords } = await import('../../src/protocol/tool-record.ts');
  const { fromPlainState, hashState } = await import('../../src/session/session-state.ts');
  const { session, snapshots } = fromSessionExport(document);
  const old = await toSessionExport(
    session,
    snapshots.map(({ snapshot, state }) => {
      const bare = fromPlainState({
        messages: withoutRecords(state.history.toArray()),
        ...(state.custom !== undefined && { custom: state.custom }),
        artifacts: [...state.artifacts],
      });
      return {
        snapshot: { ...snapshot, stateHash: hashState(bare), sessionId, orphaned: false },
        state: bare,
      };
    }),
  );
  const report = await replay(app, { sessions: old, with: { model: scriptedModelFrom(old) } });
  expect(paths(report.turns)).toEqual([]);
  expect(report.turns[0]?.missingEffects).toEqual([
    expect.stringContaining('changed the custom state'),
    expect.stringContaining('changed the artifacts'),
  ]);
});

test('S429 what cannot be read is skipped with its reason: a newer format, damage, no JSON, no key, no session', async () => {
  const folder = await tempFolder();
  const key = Buffer.alloc(32, 1);
  const path = join(folder, 'secret.db');
  const secret = open(sqliteStore(path, { encryption: { keys: [key] } }));
  const { sessionId } = await secret.defineAgent({ name: 'chat' }).run('hello');
  const document = await exportOf(secret, 'chat', sessionId);
  await secret.close();
  const app = open();
  app.defineAgent({ name: 'chat' });
  await writeFile(join(folder, 'newer.json'), JSON.stringify({ ...document, format: 99 }));
  await writeFile(
    join(folder, 'damaged.json'),
    JSON.stringify(document).replace('You said', 'You sang'),
  );
  await writeFile(join(folder, 'text.json'), 'no JSON');
  await writeFile(join(folder, 'whole.jsonl'), `${JSON.stringify(document)}\n`);
  const report = await replay(app, { sessions: [folder, 'unknown'], concurrency: 1 });
  expect(report.skipped.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('damaged'),
    expect.stringContaining('format 99'),
    expect.stringContaining('not JSON'),
    'No such session.',
  ]);
  expect(report.turns).toHaveLength(1);
  const locked = sqliteStore(path);
  await expect(
    (async () => {
      await locked.open?.();
      const found = await replay(app, {
        sessions: { store: locked, agent: 'chat', ids: [sessionId] },
      });
      expect(found.turns).toEqual([]);
      throw new Error(found.skipped[0]?.reason);
    })(),
  ).rejects.toThrow(/key|encrypt/i);
  await locked.close?.();
});

test('S429 a turn with messages that were added while it ran is skipped, and says why', async () => {
  const app = open();
  const asked = Promise.withResolvers<void>();
  const added = Promise.withResolvers<void>();
  const wait = app.defineTool(
    { name: 'wait', description: 'Waits.', input: z.object({ message: z.string() }) },
    async () => {
      asked.resolve();
      await added.promise;
      return 'waited';
    },
  );
  const chat = app.defineAgent({ name: 'chat', tools: [wait] });
  const turn = chat.stream('call wait');
  await asked.promise;
  await turn.steer('and this');
  added.resolve();
  const { sessionId } = await turn.output;
  await chat.run('hello', { sessionId });
  const report = await replay(app, { sessions: sessionId, ...recorded });
  expect(report.turns).toHaveLength(1);
  expect(report.skipped).toEqual([
    expect.objectContaining({ reason: expect.stringContaining('added while the turn ran') }),
  ]);
});

test('S429 S485 a turn after an edit replays from the edited state, and the edit is no turn', async () => {
  const app = open();
  const look = app.defineTool(
    { name: 'look', description: 'Looks.', input: z.object({ message: z.string() }) },
    (_, { session }) => session.custom ?? null,
  );
  const state = z.object({ budget: z.number() });
  const chat = app.defineAgent({
    name: 'chat',
    tools: [look],
    state,
    initialState: { budget: 900 },
  });
  const first = await chat.run('hello');
  const { sessionId } = await chat.edit(first, { custom: { budget: 600 } });
  await chat.run('call look', { sessionId });
  const report = await replay(app, { sessions: sessionId, tools: 'live', ...recorded });
  expect(report.turns.map(({ turnIndex }) => turnIndex)).toEqual([0, 1]);
  expect(paths(report.turns)).toEqual([]);
  expect(report.skipped).toEqual([]);
  expect(report.turns[1]?.replayed.text).toContain('600');
});

test('S429 a turn that another worker took over replays, with the tool calls of both', async () => {
  const claimTtl = 60_000;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const calls: string[] = [];
  /** A process with the agent, whose model is at the given place of its script. */
  const start = (own: Store, script: Parameters<typeof scriptedModel>[0]) => {
    const model = scriptedModel(script);
    const app = waymark({ model, store: own, clock, claimTtl, onError: () => {} });
    closers.push(() => app.close());
    const state = z.object({ notes: z.array(z.string()) });
    const note = app.defineTool(
      { name: 'note', description: 'Notes', input: z.object({ what: z.string() }), state },
      ({ what }, { session }) => {
        calls.push(what);
        session.updateCustom(({ notes }) => void notes.push(what));
      },
    );
    const initialState = { notes: [] };
    const chat = app.defineAgent({ name: 'chat', tools: [note], state, initialState });
    return { app, chat, model };
  };
  const call = (what: string) => ({ toolCalls: [{ name: 'note', input: { what } }] });
  const first = start(line, [call('before'), { chunks: ['lost'], hang: true }]);
  const run = await first.chat.start('note twice');
  await eventually(() => expect(first.model.requests).toHaveLength(2));
  line.cut();
  const second = start(store, [call('after'), 'Noted.']);
  advance(2 * claimTtl);
  const ended = await second.chat.wait(run.id);
  expect(ended.state?.custom).toEqual({ notes: ['before', 'after'] });
  const report = await replay(second.app, { sessions: ended.sessionId, ...recorded });
  expect(report.skipped).toEqual([]);
  expect(report.turns.map(({ replayed }) => replayed.text)).toEqual(['Noted.']);
  expect(paths(report.turns)).toEqual([]);
  expect(calls).toEqual(['before', 'after']);
  await line.heal();
});
