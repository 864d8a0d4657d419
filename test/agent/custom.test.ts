import { expect, test } from 'vitest';
import type { AgentSession, TurnInfo } from '../../src/agent/contract/handler.ts';
import type { Session } from '../../src/session/session.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createGate } from './support/gate.ts';
import { all, modelSays, must, openApp, refused, say, told, until } from './support/kit.ts';

test('S27 S28 S135 the loop adds the message, tells the turn its place, and owns its end', async () => {
  await using app = openApp();
  const turns: (Omit<TurnInfo, 'signal'> & { said: string[] })[] = [];
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run((input, { signal: _, ...info }) => {
      expect(input.message?.role).toBe('user');
      turns.push({ ...info, said: told(session.messages) });
      session.addMessages(modelSays('ok'));
    }),
  );
  const connection = agent.streamBidi();
  await connection.sendText('a');
  await connection.sendText('b');
  const { sessionId, snapshotIds = [] } = await connection.output();
  expect(turns).toEqual([
    { snapshotId: snapshotIds[0], turnIndex: 0, said: ['user: a'] },
    {
      snapshotId: snapshotIds[1],
      parentId: snapshotIds[0],
      turnIndex: 1,
      said: ['user: a', 'model: ok', 'user: b'],
    },
  ]);
  await agent.runText('c', { sessionId });
  expect(turns[2]).toMatchObject({ parentId: snapshotIds[1], turnIndex: 2 });
});

test('S29 the default result is the last message and all artifacts; the handler may give another', async () => {
  await using app = openApp();
  const usual = app.defineCustomAgent({ name: 'usual' }, async (session) => {
    await session.run(() => {
      session.addMessages(modelSays('said'));
      session.addArtifacts({ name: 'a', parts: [] }, { name: 'b', parts: [] });
    });
    return session.result();
  });
  const plain = app.defineCustomAgent({ name: 'plain' }, (session) =>
    session.run(() => {
      session.addMessages(modelSays('said'));
      session.addArtifacts({ name: 'a', parts: [] }, { name: 'b', parts: [] });
    }),
  );
  const { message: marked, artifacts } = await usual.runText('x');
  const { metadata: _, ...message } = marked ?? {};
  expect({ message, artifacts }).toEqual({
    message: modelSays('said'),
    artifacts: [
      { name: 'a', parts: [] },
      { name: 'b', parts: [] },
    ],
  });
  expect(await plain.runText('x')).toMatchObject({ message, artifacts });
  const own = app.defineCustomAgent({ name: 'own' }, async (session) => {
    await session.run(() => {
      session.addMessages(modelSays('said'));
      session.addArtifacts({ name: 'a', parts: [] }, { name: 'b', parts: [] });
    });
    return { artifacts: session.artifacts.slice(1), output: { done: true } };
  });
  const given = await own.runText('x');
  expect(given).toMatchObject({ artifacts: [{ name: 'b' }], output: { done: true } });
  expect(given.message).toBeUndefined();
});

test('S30 a handler cannot send what is the turn loop’s to send', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session, { respond }) =>
    session.run(async () => {
      for (const field of ['turnStart', 'turnEnd', 'snapshotCreated', 'customPatch']) {
        await refused(respond.send({ [field]: {} } as never), 'INVALID_ARGUMENT');
      }
      await refused(respond.modelChunk({ content: [{ nothing: 1 } as never] }), 'INVALID_ARGUMENT');
      await respond.send({ status: 1, modelChunk: { content: [{ text: 'x' }] } });
    }),
  );
  const chunks = await all(agent.streamText('x').stream);
  expect(chunks.slice(1, -1)).toEqual([{ status: 1, modelChunk: { content: [{ text: 'x' }] } }]);
  expect(chunks.at(-1)).toMatchObject({ turnEnd: { finishReason: 'stop' } });
});

test('S32 a handler that never enters its loop still ends its turn once', async () => {
  await using app = openApp();
  const returning = app.defineCustomAgent({ name: 'returning' }, (session) => {
    session.addMessages(modelSays('no loop'));
  });
  const chunks = await all(returning.streamText('a').stream);
  expect(chunks.filter(({ turnEnd }) => turnEnd)).toMatchObject([
    { turnEnd: { finishReason: 'stop' } },
  ]);
  const output = await returning.runText('a');
  expect(told((await returning.getSession(output.sessionId))?.state?.messages)).toEqual([
    'user: a',
    'model: no loop',
  ]);

  const throwing = app.defineCustomAgent({ name: 'throwing' }, () => {
    throw new Error('secret');
  });
  const ended = await all(throwing.streamText('a').stream);
  expect(ended.filter(({ turnEnd }) => turnEnd)).toMatchObject([
    { turnEnd: { finishReason: 'failed' } },
  ]);
  expect(await throwing.runText('a', { throwOnError: false })).toMatchObject({
    finishReason: 'failed',
    error: { status: 'INTERNAL' },
  });

  const waiting = app.defineCustomAgent(
    { name: 'waiting' },
    async (_session, { respond, signal }) => {
      await respond.modelChunk({ role: 'model', content: [{ text: 'half' }] });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  );
  const connection = waiting.streamBidi();
  await connection.sendText('a');
  await until(connection.receive(), ({ modelChunk }) => modelChunk !== undefined);
  connection.abort();
  const stopped = await connection.output();
  expect(stopped).toMatchObject({
    finishReason: 'aborted',
    message: { content: [{ text: 'half' }] },
  });
});

test('S33 changes behind the loop that cannot be saved are told, not lost', async () => {
  const store = memoryStore();
  for (const concurrency of ['reject', 'wait', 'fork'] as const) {
    await using app = openApp({ store });
    const gate = createGate();
    const name = `custom-${concurrency}`;
    const agent = app.defineCustomAgent({ name, concurrency }, async (session) => {
      await session.run(() => {
        session.addMessages(modelSays('ok'));
      });
      if (session.messages.length > 2) return;
      await gate.wait();
      session.setCustom('late');
    });
    const first = agent.runText('a', { sessionId: 's', throwOnError: false });
    await gate.reached;
    // Somebody else goes on with the session before the handler has come to its end.
    await agent.runText('b', { sessionId: 's' });
    gate.open();
    const output = await first;
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'ABORTED' } });
    expect(output.snapshotId).toBe(output.snapshotIds?.[0]);
    const { state, running } = must(await agent.getSession('s'));
    expect({ running, custom: state?.custom, said: state?.messages?.length }).toEqual({ said: 4 });
  }
});

test('S68 a generate inside a custom agent has its tool iterations, too', async () => {
  await using app = openApp();
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
    session?.setCustom('noted');
    return 1;
  });
  const model = scriptedModel([{ toolCalls: [{ name: 'note' }] }, 'done']);
  const agent = app.defineCustomAgent({ name: 'custom', snapshot: 'always' }, (session) =>
    session.run(async (_input, { signal }) => {
      const { messages } = await app.generate({
        model,
        messages: session.messages,
        tools: [note],
        signal,
      });
      session.addMessages(...messages);
    }),
  );
  const { sessionId } = await agent.runText('a');
  const { items } = await agent.listSnapshots(sessionId);
  expect(items.map(({ event }) => event)).toEqual(['toolIterationEnd', 'turnEnd']);
  const { state } = must(await agent.getSnapshot({ snapshotId: must(items[0]).snapshotId }));
  expect(state).toMatchObject({ custom: 'noted', messages: [{ role: 'user' }] });
});

test('S52 a turn function says how its turn ended, what came of it and what it used', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(() => ({ finishReason: 'blocked', output: [1], usage: { totalTokens: 3 } })),
  );
  expect(await agent.runText('a')).toMatchObject({
    finishReason: 'blocked',
    output: [1],
    usage: { totalTokens: 3 },
  });
});

test('S34 a handler that is called without an input saves nothing', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, async (session) => {
    await session.run(() => {});
    session.setCustom('nobody asked');
  });
  const { sessionId } = await agent.streamBidi().output();
  expect(await agent.getSession(sessionId)).toBeUndefined();
});

test('S151: a session cannot be changed once its invocation has ended', async () => {
  for (const storeless of [false, true]) {
    await using app = openApp({ storeless });
    const kept: AgentSession[] = [];
    const agent = app.defineCustomAgent({ name: 'custom' }, async (session, { context }) => {
      kept.push(session);
      if (context.loop !== false) await session.run(() => ({ finishReason: 'stop' }));
      if (context.fail === true) throw new Error('failed');
    });
    await agent.runText('a');
    await agent.runText('b', { context: { fail: true }, throwOnError: false });
    await agent.runText('c', { context: { loop: false } });
    await agent.streamBidi().output();
    expect(kept).toHaveLength(4);
    for (const session of kept) expectClosed(session);
  }
});

test('S151: nor by a tool of a prompt agent, nor after a detached run', async () => {
  await using app = openApp();
  const kept: Session[] = [];
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
    kept.push(must(session));
    return 1;
  });
  const model = scriptedModel([
    { toolCalls: [{ name: 'note' }] },
    'done',
    { toolCalls: [{ name: 'note' }] },
    'done',
  ]);
  const agent = app.defineAgent({ name: 'prompt', model, tools: [note] });
  await agent.runText('a');
  const { snapshotId } = await agent.streamBidi().detach(say('b'));
  await agent.wait(must(snapshotId));
  await app.close();
  expect(kept).toHaveLength(2);
  for (const session of kept) expectClosed(session);
});

test('S151: a change that comes while the end is being saved is told, not lost', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  const saving = createGate();
  const { commit } = must(store.runs);
  const slow = {
    ...store,
    runs: {
      ...must(store.runs),
      commit: async (...args: Parameters<typeof commit>) => {
        if (args[1].event === 'invocationEnd') await saving.wait();
        return await commit(...args);
      },
    },
  };
  let kept: AgentSession | undefined;
  const agent = app.defineCustomAgent({ name: 'custom', store: slow }, async (session) => {
    kept = session;
    await session.run(() => {});
    session.setCustom('after the loop');
  });
  const running = agent.runText('a');
  await saving.reached;
  expectClosed(must(kept));
  saving.open();
  const { sessionId } = await running;
  expect((await agent.getSession(sessionId))?.state?.custom).toBe('after the loop');
});

test('S612 the model of a call is that of the generate calls that name none', async () => {
  const own = scriptedModel(['own', 'own', 'in the tool', 'in the sub-agent', 'own']);
  await using app = openApp({ model: own });
  const helper = app.defineAgent({ name: 'helper' });
  const ask = app.defineTool({ name: 'ask', description: 'Asks.', input: {} }, async () => {
    const { text } = await app.generate('in a tool');
    return [text, (await helper.run('in a sub-agent')).text];
  });
  const fixed = scriptedModel(['fixed', 'fixed']);
  const agent = app.defineCustomAgent({ name: 'custom' }, async (session) => {
    const { text: before } = await app.generate('before the loop');
    await session.run(async () => {
      const { text } = await app.generate({ messages: session.messages, tools: [ask] });
      const { text: named } = await app.generate({ model: fixed, prompt: 'with a model' });
      session.addMessages(modelSays([before, text, named].join(', ')));
    });
  });
  expect((await agent.run('a')).text).toBe('own, own, fixed');
  const override = scriptedModel([
    'override',
    { toolCalls: [{ name: 'ask', input: {} }] },
    'override',
  ]);
  expect((await agent.run('b', { model: override })).text).toBe('override, override, fixed');
  expect(override.requests.at(-1)?.messages.at(-1)).toMatchObject({
    content: [{ toolResponse: { output: ['in the tool', 'in the sub-agent'] } }],
  });
  expect((await helper.run('c')).text).toBe('own');
});

test('S612 the model of a call is none of the calls in middleware and summaries of a prompt agent', async () => {
  const own = scriptedModel({ patterns: [], otherwise: 'own' });
  await using app = openApp({ model: own });
  const asked: string[] = [];
  const ask = async (prompt: string): Promise<string> => {
    const { text } = await app.generate({ prompt });
    asked.push(`${prompt}: ${text}`);
    return text;
  };
  const agent = app.defineAgent({
    name: 'prompt',
    use: [
      {
        model: async (step, next) => {
          await ask('classify');
          return await next(step);
        },
      },
    ],
    compact: { whenTokens: 1, summarize: () => ask('summarize') },
  });
  const override = scriptedModel({ patterns: [], otherwise: 'override' });
  const { sessionId } = await agent.run('a', { model: override });
  expect((await agent.run('b', { sessionId, model: override })).text).toBe('override');
  expect(asked).toEqual(['classify: own', 'summarize: own', 'classify: own']);
});

function expectClosed(session: Session): void {
  const changes = [
    () => session.setCustom(1),
    () => session.updateCustom(() => 1),
    () => session.addMessages(modelSays('late')),
    () => session.setMessages([]),
    () => session.addArtifacts({ name: 'a', parts: [] }),
    () => session.setArtifacts([]),
  ];
  for (const change of changes) {
    expect(change).toThrow(
      expect.objectContaining({
        status: 'FAILED_PRECONDITION',
        message: expect.stringContaining('has ended'),
      }),
    );
  }
  expect(session.messages).toBeDefined();
}
