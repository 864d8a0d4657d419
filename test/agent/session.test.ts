import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentHandler } from '../../src/agent/contract/handler.ts';
import type { Message } from '../../src/protocol/message.ts';
import type { Artifact } from '../../src/protocol/state.ts';
import { currentSession, type Session } from '../../src/session/session.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { all, modelSays, must, openApp, refused, say, told, userSays } from './support/kit.ts';

/** Runs one turn of a custom agent, and gives what the turn function threw or returned. */
async function inTurn<Result>(work: (session: Session) => Result): Promise<Awaited<Result>> {
  await using app = openApp();
  let result: { value: Awaited<Result> } | undefined;
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(async () => {
      result = { value: await work(session) };
    }),
  );
  const { error } = await agent.runText('hello');
  if (error) throw new Error(error.message);
  return must(result).value;
}

test('S20 a session has all its accessors', async () => {
  await inTurn((session) => {
    expect(session.id).toBeTypeOf('string');
    session.addMessages(modelSays('a'), modelSays('b'));
    expect(told(session.messages)).toEqual(['user: hello', 'model: a', 'model: b']);
    session.setMessages(session.messages.slice(0, 2));
    session.setCustom({ n: 1 });
    session.updateCustom((draft) => {
      (draft as { n: number }).n++;
    });
    session.updateCustom((draft) => ({ ...(draft as object), more: true }));
    session.addArtifacts({ name: 'a', parts: [] }, { parts: [{ text: 'unnamed' }] });
    session.setArtifacts(session.artifacts.slice(1));
    expect(session.snapshotIds).toEqual([]);
    expect(session.state).toEqual({
      sessionId: session.id,
      messages: [userSays('hello'), modelSays('a')],
      custom: { n: 2, more: true },
      artifacts: [{ parts: [{ text: 'unnamed' }] }],
    });
  });
});

test('S21 nothing that is changed later reaches the session, and nothing read from it changes it', async () => {
  await inTurn((session) => {
    const message: Message = { role: 'model', content: [{ text: 'said' }], metadata: { a: [1] } };
    const custom = { list: [{ n: 1 }] };
    const artifact: Artifact = { name: 'a', parts: [{ data: { x: 1 } }] };
    session.addMessages(message);
    session.setCustom(custom);
    session.addArtifacts(artifact);
    const before = JSON.stringify(session.state);
    (message.content[0] as { text: string }).text = 'changed';
    (must(message.metadata).a as number[]).push(2);
    custom.list.push({ n: 2 });
    (custom.list[0] as { n: number }).n = 9;
    artifact.parts.length = 0;
    expect(JSON.stringify(session.state)).toBe(before);
    for (const read of [
      session.messages,
      session.messages[1],
      session.messages[1]?.content,
      session.messages[1]?.metadata,
      session.custom,
      (session.custom as typeof custom).list[0],
      session.artifacts,
      session.artifacts[0]?.parts[0],
    ]) {
      expect(Object.isFrozen(read)).toBe(true);
    }
    const { state } = session;
    state.messages?.push(modelSays('mine'));
    expect(JSON.stringify(session.state)).toBe(before);
  });
});

test('S21 inputs, outputs and snapshots are nobody’s but their holder’s', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one', 'two']) });
  const input = say('hello');
  const connection = chat.streamBidi();
  await connection.send(input);
  must(input.message).content.push({ text: ' and more' });
  const output = await connection.output();
  try {
    must(output.message).content.push({ text: 'forged' });
  } catch {
    // A frozen one is as good.
  }
  const snapshot = must(await chat.getSnapshot({ sessionId: output.sessionId }));
  snapshot.state?.messages?.push(userSays('forged'));
  await chat.runText('again', { sessionId: output.sessionId });
  const { state } = must(await chat.getSession(output.sessionId));
  expect(told(state?.messages)).toEqual(['user: hello', 'model: one', 'user: again', 'model: two']);
});

test('S22 an artifact takes the place of the one with its name; one without is appended', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session, { respond }) =>
    session.run(async () => {
      session.addArtifacts({ name: 'a', parts: [] }, { parts: [] }, { name: 'b', parts: [] });
      await respond.artifact({ name: 'a', parts: [{ text: 'new' }] });
      await respond.artifact({ parts: [{ text: 'another' }] });
    }),
  );
  const { artifacts } = await agent.runText('x');
  expect(artifacts).toEqual([
    { name: 'a', parts: [{ text: 'new' }] },
    { parts: [] },
    { name: 'b', parts: [] },
    { parts: [{ text: 'another' }] },
  ]);
});

describe('S23 a value that is not JSON', () => {
  const circular: Record<string, unknown> = { a: 1 };
  circular.self = circular;
  const values: [string, unknown][] = [
    ['circular', circular],
    ['a function', { f: () => 1 }],
    ['NaN', { n: Number.NaN }],
    ['infinite', { n: Number.POSITIVE_INFINITY }],
    ['a class instance', { when: new Date(0) }],
    ['a map', new Map([['a', 1]])],
    ['a bigint', { n: 1n }],
    ['a symbol', { s: Symbol('s') }],
  ];
  test.each(values)(
    'S23 %s is refused by the call that puts it in, and nothing is half written',
    async (_, bad) => {
      await inTurn(async (session) => {
        session.setCustom({ kept: true });
        session.addArtifacts({ name: 'kept', parts: [] });
        const before = JSON.stringify(session.state);
        const calls: (() => void)[] = [
          () => session.setCustom(bad),
          () =>
            session.updateCustom((draft) => {
              Object.assign(draft as object, { other: 1, bad });
            }),
          () =>
            session.addArtifacts(
              { name: 'x', parts: [] },
              { name: 'y', parts: [{ data: bad as never }] },
            ),
          () => session.setArtifacts([{ name: 'y', parts: [{ data: bad as never }] }]),
          () =>
            session.addMessages(modelSays('fine'), {
              ...modelSays('x'),
              metadata: { bad } as never,
            }),
          () => session.setMessages([{ role: 'model', content: [{ data: bad as never }] }]),
        ];
        for (const call of calls) {
          expect(call).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }));
          expect(JSON.stringify(session.state)).toBe(before);
        }
      });
    },
  );

  test('S23 in an input, a status, a context, a step or an output it is refused as well', async () => {
    await using app = openApp();
    const handler: AgentHandler = async (session, { respond }) => {
      await session.run(async () => {
        await expect(respond.status(circular)).rejects.toMatchObject({
          status: 'INVALID_ARGUMENT',
        });
        await expect(
          respond.artifact({ parts: [{ data: circular as never }] }),
        ).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
        await expect(session.step('s', () => circular)).rejects.toMatchObject({
          status: 'INVALID_ARGUMENT',
        });
        return { output: circular };
      });
    };
    const agent = app.defineCustomAgent({ name: 'custom' }, handler);
    await refused(
      agent.run({ message: { ...userSays('x'), metadata: circular as never } }),
      'INVALID_ARGUMENT',
    );
    await refused(agent.runText('x', { context: circular as never }), 'INVALID_ARGUMENT');
    expect((await agent.listSessions()).items).toEqual([]);
    expect(await agent.runText('x', { throwOnError: false })).toMatchObject({
      finishReason: 'failed',
      error: { status: 'INVALID_ARGUMENT' },
    });
  });
});

describe.each([
  ['with a store', false],
  ['without', true],
])('S711 dates in results, %s', (_, storeless) => {
  const when = new Date('2026-11-18T12:00:00.000Z');
  const text = '2026-11-18T12:00:00.000Z';
  test('of tools and their checkpoints are their text, also nested', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'due' }] }, 'Today.']);
    await using app = openApp({ model, storeless });
    const seen: unknown[] = [];
    const due = app.defineTool(
      { name: 'due', description: 'Says when.' },
      async (_input, { checkpoint }) => {
        seen.push(await checkpoint('read', () => ({ at: when })));
        return { at: when, list: [{ at: when, no: 1 }] };
      },
    );
    const agent = app.defineAgent({ name: 'dated', tools: [due] });
    expect((await agent.run('When?')).text).toBe('Today.');
    expect(seen).toEqual([{ at: text }]);
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { toolResponse: { output: { at: text, list: [{ at: text, no: 1 }] } } },
    ]);
  });

  test('of steps are their text', async () => {
    await using app = openApp({ storeless });
    const agent = app.defineCustomAgent({ name: 'steps' }, (session) =>
      session.run(async () => ({ output: await session.step('now', () => [when, { at: when }]) })),
    );
    expect((await agent.run('x')).output).toEqual([text, { at: text }]);
  });

  test('that are invalid, or beside something that is not JSON, are refused with their place', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'due' }] }, 'Sorry.']);
    await using app = openApp({ model, storeless });
    const results = [
      { at: when, bad: () => 1 },
      { ok: 1, at: new Date('never') },
    ];
    const due = app.defineTool({ name: 'due', description: 'Says when.' }, () => results.shift());
    const agent = app.defineAgent({ name: 'dated', tools: [due] });
    await agent.run('When?');
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('/bad is not JSON');
    model.add({ toolCalls: [{ name: 'due' }] }, 'Sorry.');
    await agent.run('When?');
    expect(JSON.stringify(model.requests[3]?.messages)).toContain('/at is not JSON');
  });
});

test('S24 currentSession is that of the turn around it, under concurrency and in nested calls', async () => {
  await using app = openApp();
  let calls = 0;
  const tell = app.defineTool({ name: 'tell', description: 'Tells.' }, async () => {
    const { id } = currentSession();
    // The later they come, the sooner they go on.
    await new Promise((resolve) => setTimeout(resolve, 20 - (calls++ % 20)));
    expect(currentSession().id).toBe(id);
    await app.generate({ model: scriptedModel(['inner']), prompt: 'x' });
    currentSession<string[]>().setCustom([currentSession().id]);
    return currentSession().id;
  });
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel({
      patterns: [[/./, { toolCalls: [{ name: 'tell' }, { name: 'tell' }] }]],
      otherwise: '',
    }),
    tools: [tell],
  });
  const outputs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => chat.runText('who?', { sessionId: `session ${n}` })),
  );
  for (const { sessionId, message } of outputs) {
    expect(told([must(message)])).toEqual([`model: ${sessionId}\n${sessionId}`]);
    expect((await chat.getSession(sessionId))?.state?.custom).toEqual([sessionId]);
  }
  expect(() => currentSession()).toThrow(
    expect.objectContaining({ status: 'FAILED_PRECONDITION' }),
  );
});

test('S25 updateCustom costs and sends what it changes', async () => {
  await using app = openApp();
  const big = Array.from({ length: 1000 }, (_, n) => ({ n }));
  const agent = app.defineCustomAgent(
    {
      name: 'custom',
      state: z.object({ big: z.array(z.object({ n: z.number() })) }),
      initialState: { big },
    },
    (session) =>
      session.run(() => {
        const before = session.custom;
        for (const n of [1, 2, 3]) {
          session.updateCustom((draft) => {
            must(draft.big[n]).n = -n;
          });
        }
        // What did not change is the same.
        expect(session.custom.big[500]).toBe(before.big[500]);
        expect(before.big[1]).toEqual({ n: 1 });
      }),
  );
  const chunks = await all(agent.streamText('x').stream);
  expect(chunks.map(({ customPatch }) => customPatch).filter(Boolean)).toEqual([
    [{ op: 'replace', path: '', value: expect.objectContaining({ big: expect.any(Array) }) }],
    [{ op: 'replace', path: '/big/2/n', value: -2 }],
    [{ op: 'replace', path: '/big/3/n', value: -3 }],
  ]);
});

describe('custom state', () => {
  const schema = z.object({ topics: z.array(z.string()) });

  test('S12 it is undefined until it is set, unless there is an initial one', async () => {
    await using app = openApp();
    const seen: unknown[] = [];
    const look = { model: scriptedModel(Array(9).fill('ok')), state: schema };
    const without = app.defineCustomAgent({ name: 'without', state: schema }, (session) =>
      session.run(() => void seen.push(session.custom)),
    );
    const initial = { initialState: { topics: ['first'] } };
    const withOne = app.defineCustomAgent({ name: 'with', state: schema, ...initial }, (session) =>
      session.run(() => void seen.push(session.custom)),
    );
    await without.runText('x');
    await withOne.runText('x');
    expect(seen).toEqual([undefined, { topics: ['first'] }]);
    // A state that has none begins with it, too.
    const held = app.defineAgent({ name: 'held', store: false, ...look, ...initial });
    const { state } = await held.runText('x', { state: { messages: [] } });
    expect(state?.custom).toEqual({ topics: ['first'] });
    const store = memoryStore();
    const before = app.defineAgent({ name: 'before', store, model: look.model });
    const { sessionId } = await before.runText('x');
    await using later = openApp({ store });
    const after = later.defineAgent({ name: 'before', ...look, ...initial });
    await after.runText('y', { sessionId });
    expect((await after.getSession(sessionId))?.state?.custom).toEqual({ topics: ['first'] });
  });

  test('S13 a stored one that no longer fits goes through upgradeState, else it is refused by its path', async () => {
    const store = memoryStore();
    await using old = openApp({ store });
    const model = scriptedModel(Array(9).fill('ok'));
    const first = old.defineAgent({ name: 'chat', model, initialState: { topic: 'a' } });
    const { sessionId, snapshotId = '' } = await first.runText('x');

    await using strict = openApp({ store });
    const refusing = strict.defineAgent({ name: 'chat', model, state: schema });
    for (const init of [{ sessionId }, { snapshotId }]) {
      const error = await refused(refusing.runText('y', init), 'FAILED_PRECONDITION');
      expect(error.message).toContain('/topics');
    }
    await using lenient = openApp({ store });
    const upgrading = lenient.defineAgent({
      name: 'chat',
      model,
      state: schema,
      upgradeState: (custom) => ({ topics: [(custom as { topic: string }).topic] }),
    });
    await upgrading.runText('y', { sessionId });
    const { state } = must(await upgrading.getSession(sessionId));
    expect(state?.custom).toEqual({ topics: ['a'] });
    expect((await upgrading.getSnapshot({ snapshotId }))?.state?.custom).toEqual({ topic: 'a' });

    await using wrong = openApp({ store });
    const failing = wrong.defineAgent({
      name: 'chat',
      model,
      state: schema,
      upgradeState: () => ({ topics: 'no list' as never }),
    });
    await refused(failing.runText('y', { snapshotId }), 'FAILED_PRECONDITION');
    // Nobody holds the session after that.
    expect((await upgrading.getSession(sessionId))?.running).toBeUndefined();
  });

  test('S14 one that is set as a whole must fit the schema', async () => {
    await using app = openApp();
    const agent = app.defineCustomAgent(
      { name: 'custom', state: schema, initialState: { topics: [] } },
      (session) =>
        session.run(() => {
          expect(() => session.setCustom({ topics: [1] } as never)).toThrow(
            expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
          );
          expect(session.custom).toEqual({ topics: [] });
          session.setCustom({ topics: ['fine'] });
        }),
    );
    const { sessionId, error } = await agent.runText('x');
    expect(error).toBeUndefined();
    expect((await agent.getSession(sessionId))?.state?.custom).toEqual({ topics: ['fine'] });
  });

  test('S14 one that was changed piece by piece fails its turn when it does not fit, and the session goes on', async () => {
    await using app = openApp();
    const spoil = app.defineTool({ name: 'spoil', description: 'Spoils the state' }, () => {
      currentSession().updateCustom((draft) => {
        (draft as { topics: unknown[] }).topics.push(1);
      });
      return 'spoilt';
    });
    const model = scriptedModel({
      patterns: [[/^spoil/, { toolCalls: [{ name: 'spoil' }] }]],
      otherwise: 'Fine.',
    });
    const byTool = app.defineAgent({
      name: 'by-tool',
      tools: [spoil],
      model,
      state: schema,
      initialState: { topics: [] },
      snapshot: 'always',
    });
    const byHandler = app.defineCustomAgent(
      { name: 'by-handler', state: schema, initialState: { topics: [] } },
      (session) =>
        session.run(({ message }) => {
          session.updateCustom((draft) => {
            draft.topics.push((told(message && [message])[0] === 'user: spoil' ? 1 : 'x') as never);
          });
        }),
    );
    for (const agent of [byTool, byHandler]) {
      const { sessionId, snapshotId } = await agent.runText('hello');
      const failed = await agent.runText('spoil', { sessionId, throwOnError: false });
      expect(failed).toMatchObject({ finishReason: 'failed', snapshotId });
      expect(failed.error).toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('topics'),
      });
      const { finishReason } = await agent.runText('again', { sessionId });
      expect(finishReason).toBe('stop');
      const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
      for (const { status, snapshotId: id } of items) {
        const { state } = must(await agent.getSnapshot({ snapshotId: id }));
        if (status === 'succeeded') expect(must(state?.custom).topics).not.toContain(1);
      }
    }
  });
});

test('S153: without an initial state the first draft is undefined, and the recipe returns the document', async () => {
  await using app = openApp();
  const state = z.object({ n: z.number() });
  const agent = app.defineCustomAgent({ name: 'counter', state }, (session) =>
    session.run(() => {
      const drafts: unknown[] = [];
      session.updateCustom((draft) => {
        drafts.push(draft);
        return undefined;
      });
      expect(session.custom).toBeUndefined();
      const error = thrownBy(() =>
        session.updateCustom((draft) => {
          (draft as { n: number }).n = 1;
        }),
      );
      expect(error).toMatchObject({ status: 'FAILED_PRECONDITION', cause: expect.any(TypeError) });
      expect((error as Error).message).toMatch(/no custom state yet.*initialState/);
      // An error of the recipe's own is not covered up.
      const own = new Error('own');
      expect(
        thrownBy(() =>
          session.updateCustom(() => {
            throw own;
          }),
        ),
      ).toBe(own);
      session.updateCustom((draft) => ({ n: (draft?.n ?? 0) + 1 }));
      session.updateCustom((draft) => {
        drafts.push({ ...draft });
        if (draft !== undefined) draft.n++;
      });
      return { output: { drafts: drafts.map((draft) => draft ?? null), custom: session.custom } };
    }),
  );
  const turn = agent.streamText('go');
  const patches = (await all(turn.stream)).flatMap(({ customPatch }) => customPatch ?? []);
  expect(patches).toEqual([
    { op: 'replace', path: '', value: { n: 1 } },
    { op: 'replace', path: '/n', value: 2 },
  ]);
  expect((await turn.output).output).toEqual({ drafts: [null, { n: 1 }], custom: { n: 2 } });
});

function thrownBy(fn: () => void): unknown {
  try {
    fn();
  } catch (error) {
    return error;
  }
  return expect.fail('nothing was thrown');
}

test('S724 a state without messages has an empty list of them, and no empty artifacts', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(async () => {
      session.setMessages([]);
    }),
  );
  const { snapshotId = '' } = await agent.runText('hello');
  expect((await agent.getSnapshot({ snapshotId }))?.state).toEqual({ messages: [] });
});
