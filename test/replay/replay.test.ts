import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type App, memoryStore, type Store, waymark } from 'waymark';
import { replay, scriptedModelFrom } from 'waymark/replay';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const trip = z.object({ likes: z.array(z.string()) });
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Changes {
  readonly store?: Store;
  readonly answer?: (results: readonly unknown[]) => string;
  readonly system?: string;
  readonly tools?: boolean;
  readonly executed?: string[];
  readonly result?: string;
}

/** An app whose tool changes the state and an artifact, and would have an effect outside. */
function open(changes: Changes = {}): App {
  const model = scriptedModel({
    patterns: [
      [/^like (\w+)/, ([, what = '']) => ({ toolCalls: [{ name: 'note', input: { what } }] })],
      [
        /^both/,
        {
          toolCalls: [
            { name: 'note', input: { what: 'a' } },
            { name: 'note', input: { what: 'b' } },
          ],
        },
      ],
      [/^pay/, { text: 'Paying.', toolCalls: [{ name: 'pay', input: { amount: 5 } }] }],
      [/^fail/, { text: 'half', error: new Error('on purpose') }],
      [/.*/, ([text]) => `You said ${text}.`],
    ],
    afterTools: (_, results) => changes.answer?.(results) ?? `Done: ${JSON.stringify(results)}.`,
    otherwise: 'Hm.',
  });
  const app = waymark({ model, store: changes.store ?? memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  const note = app.defineTool(
    { name: 'note', description: 'Notes.', input: z.object({ what: z.string() }), state: trip },
    ({ what }, { session }) => {
      changes.executed?.push(what);
      session.updateCustom((draft) => void draft.likes.push(what));
      session.addArtifacts({ name: 'likes.txt', parts: [{ text: session.custom.likes.join() }] });
      return changes.result ?? `noted ${what}`;
    },
  );
  const pay = app.defineTool(
    { name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }) },
    ({ amount }, { resumed, interrupt }) => {
      if (resumed === undefined) interrupt({ amount });
      changes.executed?.push(`pay ${amount}`);
      return { paid: amount, by: resumed ?? null };
    },
  );
  app.defineAgent({
    name: 'trip',
    system: changes.system ?? 'Plan.',
    state: trip,
    initialState: { likes: [] },
    tools: changes.tools === false ? [pay] : [note, pay],
  });
  return app;
}

async function record(app: App): Promise<string> {
  const agent = app.agent('trip');
  const first = await agent.run('hello');
  const { sessionId } = first;
  await agent.run('like food', { sessionId });
  await agent.run('both', { sessionId });
  const asked = await agent.run('pay', { sessionId });
  await agent.resume(
    asked,
    asked.interrupts.map((request) => request.approve({ resumed: 'me' } as never)),
  );
  await agent.run('fail', { sessionId, throwOnError: false });
  await agent.run('branch', { from: first });
  return sessionId;
}

test('S423 a replay without changes repeats every turn, and reports no difference', async () => {
  const executed: string[] = [];
  const app = open({ executed });
  const sessionId = await record(app);
  executed.length = 0;
  const report = await replay(app, {
    sessions: sessionId,
    with: (session) => ({ model: scriptedModelFrom(session) }),
  });
  expect(report.skipped).toEqual([]);
  expect(report.turns.flatMap(({ divergences }) => divergences)).toEqual([]);
  expect(report.turns.flatMap(({ missingEffects }) => missingEffects)).toEqual([]);
  expect(report.turns.map(({ turnIndex }) => turnIndex)).toEqual([0, 1, 2, 3, 4, 5, 1]);
  expect(report).toMatchObject({ same: true, sessions: 1, divergent: 0 });
  expect(report.replayed.tokens).toBe(report.recorded.tokens);
  expect(executed).toEqual([]);
});

test('S424 nothing outside is executed in a replay of recorded tools, and the store is only read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-replay-'));
  closers.push(() => rm(folder, { recursive: true }));
  const writes: string[] = [];
  const inner = memoryStore();
  const app = waymark({
    model: scriptedModel({
      patterns: [[/(.*)/, ([, text = '']) => ({ toolCalls: [{ name: 'save', input: { text } }] })]],
      afterTools: () => 'Saved.',
      otherwise: '',
    }),
    store: watched(inner, writes),
    onError: () => {},
  });
  closers.push(() => app.close());
  const save = app.defineTool(
    { name: 'save', description: 'Saves.', input: z.object({ text: z.string() }) },
    async ({ text }) => {
      await writeFile(join(folder, text), text);
      return 'saved';
    },
  );
  const chat = app.defineAgent({ name: 'chat', tools: [save] });
  const { sessionId } = await chat.run('one');
  expect(await readdir(folder)).toEqual(['one']);
  writes.length = 0;
  const before = await inner.maintenance?.exportSession({ agent: 'chat' }, sessionId);
  const other = scriptedModel({
    patterns: [[/.*/, { toolCalls: [{ name: 'save', input: { text: 'two' } }] }]],
    afterTools: (_, [result]) => String(result),
    otherwise: '',
  });
  const report = await replay(app, { sessions: sessionId, with: { model: other } });
  expect(await readdir(folder)).toEqual(['one']);
  expect(writes).toEqual([]);
  expect(await inner.maintenance?.exportSession({ agent: 'chat' }, sessionId)).toEqual(before);
  expect(report.turns[0]?.divergences.map(({ kind, path }) => [kind, path])).toEqual([
    ['toolCall', '/toolCalls/0/input/text'],
    ['toolResult', '/toolCalls/0/output'],
    ['toolResult', '/toolCalls/0/error'],
    ['text', '/text'],
  ]);
  expect(report.turns[0]?.replayed.text).toContain('did not execute it');
  const live = await replay(app, { sessions: sessionId, with: { model: other }, tools: 'live' });
  expect(await readdir(folder)).toEqual(['one', 'two']);
  expect(live.turns[0]?.divergences.map(({ path }) => path)).toEqual([
    '/toolCalls/0/input/text',
    '/text',
  ]);
});

const reads = new Set(['exportSession', 'listSessions', 'getSession', 'close', 'open', 'name']);

/** A store that notes every call besides reading. */
function watched(store: Store, writes: string[]): Store {
  const watch = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(of, name) {
        const value: unknown = Reflect.get(of, name);
        if (typeof value === 'object' && value !== null) return watch(value);
        if (typeof value !== 'function' || reads.has(String(name))) return value;
        return (...args: unknown[]) => {
          writes.push(String(name));
          return value.apply(of, args);
        };
      },
    });
  return watch(store);
}

test('S425 a change is reported at the turn and the place where it matters', async () => {
  const store = memoryStore();
  const app = open({ store });
  const sessionId = await record(app);
  const document = await store.maintenance?.exportSession({ agent: 'trip' }, sessionId);
  if (document === undefined) expect.fail('nothing was exported');
  const found = async (options: Partial<Parameters<typeof replay>[1]>, from = app) => {
    const report = await replay(from, {
      sessions: document,
      with: { model: scriptedModelFrom(document) },
      ...options,
    });
    return report.turns.flatMap(({ turnIndex, divergences }) =>
      divergences.map(({ path }) => `${turnIndex} ${path}`),
    );
  };
  // A tool that answers otherwise.
  expect(await found({ tools: 'live' }, open({ result: 'ok' }))).toEqual([
    '1 /toolCalls/0/output',
    '2 /toolCalls/0/output',
    '2 /toolCalls/1/output',
  ]);
  // A tool that was removed: its effects are missing, too.
  expect(await found({}, open({ tools: false }))).toEqual([
    '1 /toolCalls/0/output',
    '1 /toolCalls/0/error',
    '1 /custom/likes/0',
    '1 /artifacts/likes.txt',
    '2 /toolCalls/0/output',
    '2 /toolCalls/0/error',
    '2 /toolCalls/1/output',
    '2 /toolCalls/1/error',
    '2 /custom/likes/2',
    '2 /custom/likes/1',
    '2 /artifacts/likes.txt',
  ]);
  // Another answer of the model, after tools only.
  const wordy = open({ answer: () => 'Other.' });
  expect(await found({ with: {} }, wordy)).toEqual(['1 /text', '2 /text', '4 /text']);
  // One stub.
  const stubbed = { '*': 'recorded', pay: () => ({ paid: 6, by: 'me' }) } as const;
  expect(await found({ tools: stubbed })).toEqual([
    '3 /toolCalls/0/output',
    '3 /toolCalls/0/interrupt',
    '3 /finishReason',
    '4 /toolCalls/0/output/paid',
  ]);
});
