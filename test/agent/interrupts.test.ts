import { expect, test } from 'vitest';
import { z } from 'zod';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, refused, type TestApp, told } from './support/kit.ts';
import { expectValid } from './support/valid.ts';

const ask = { name: 'ask', ref: 'r', input: { question: 'Really?' } };

function defineAsk(app: TestApp) {
  return app.defineInterrupt({
    name: 'ask',
    description: 'Asks a person.',
    input: z.object({ question: z.string() }),
    output: z.object({ answer: z.string() }),
  });
}

test('S100 S101 an interrupt’s answer must fit the output schema of its tool', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel([{ toolCalls: [ask] }, 'thanks']),
  });
  const { sessionId, message } = await chat.runText('x');
  expect(message?.content[0]).toMatchObject({
    toolRequest: ask,
    metadata: { interrupt: expect.anything() },
  });
  const answer = (output: object | number) => ({
    resume: { respond: [{ toolResponse: { name: 'ask', ref: 'r', output: output as never } }] },
  });
  for (const wrong of [7, {}, { answer: 1 }]) {
    await refused(chat.run(answer(wrong), { sessionId }), 'INVALID_ARGUMENT');
  }
  expect(await chat.run(answer({ answer: 'yes' }), { sessionId })).toMatchObject({
    finishReason: 'stop',
  });
});

test('S100 S104 templates that need state and context are rendered with them when a turn is resumed', async () => {
  const store = memoryStore();
  const define = (app: TestApp) => {
    const model = scriptedModel({
      patterns: [[/./, { toolCalls: [ask] }]],
      afterTools: () => 'thanks',
      otherwise: '',
    });
    const chat = app.defineAgent({
      name: 'chat',
      tools: [defineAsk(app)],
      model,
      initialState: { name: 'Ada' },
      state: z.object({ name: z.string() }),
      system: ({ state, context }) => `${state.name} by ${(context.user as { id: string }).id}`,
    });
    return { chat, model };
  };
  await using first = openApp({ store });
  const context = { user: { id: 'u' } };
  const { sessionId } = await define(first).chat.runText('x', { context });
  await using second = openApp({ store });
  const { chat, model } = define(second);
  const resume = {
    respond: [{ toolResponse: { name: 'ask', ref: 'r', output: { answer: 'yes' } } }],
  };
  expect(await chat.run({ resume }, { sessionId, context })).toMatchObject({
    finishReason: 'stop',
  });
  expect(told(model.requests[0]?.messages)[0]).toBe('system: Ada by u');
});

test('S103 a resume where nothing was asked is refused, and changes nothing', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel(['hello', 'again']),
  });
  const resume = {
    respond: [{ toolResponse: { name: 'ask', ref: 'r', output: { answer: 'x' } } }],
  };
  await refused(chat.run({ resume }), 'INVALID_ARGUMENT');
  expect((await chat.listSessions()).items.every(({ turnCount }) => turnCount === 0)).toBe(true);
  const { sessionId } = await chat.runText('x');
  await refused(chat.run({ resume }, { sessionId }), 'INVALID_ARGUMENT');
  expect((await chat.getSession(sessionId))?.running).toBeUndefined();
  expect(await chat.runText('y', { sessionId })).toMatchObject({ finishReason: 'stop' });
});

test('S100 S105 results of siblings are told to the model also when the interrupt is declined', async () => {
  await using app = openApp();
  const zero = app.defineTool({ name: 'zero', description: 'Zero.' }, () => 0);
  const model = scriptedModel([{ toolCalls: [ask, { name: 'zero', ref: 'z' }] }, 'fine']);
  const chat = app.defineAgent({ name: 'chat', tools: [defineAsk(app), zero], model });
  const { sessionId } = await chat.runText('x');
  await chat.runText('never mind', { sessionId });
  const messages = must(model.requests[1]).messages;
  expectValid(messages);
  expect(messages[2]?.content).toMatchObject([
    { toolResponse: { name: 'ask', output: expect.stringContaining('declined') } },
    { toolResponse: { name: 'zero', output: 0 } },
  ]);
});

test('S100 S106 a client-held conversation can be resumed from its state', async () => {
  await using app = openApp({ storeless: true });
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel([{ toolCalls: [ask] }, 'thanks']),
  });
  const talk = chat.chat();
  expect(await talk.send('x')).toMatchObject({ finishReason: 'interrupted' });
  const resume = {
    respond: [{ toolResponse: { name: 'ask', ref: 'r', output: { answer: 'y' } } }],
  };
  expect(await talk.send({ resume })).toMatchObject({ finishReason: 'stop' });
  await refused(talk.send({ resume }), 'FAILED_PRECONDITION');
});

test('S100 S108 an interrupt of a detached run waits in its snapshot', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel([{ toolCalls: [ask] }, 'thanks']),
  });
  const message = { role: 'user' as const, content: [{ text: 'x' }] };
  const { snapshotId = '' } = await chat.run({ message, detach: true });
  expect(await chat.wait(snapshotId)).toMatchObject({
    status: 'succeeded',
    finishReason: 'interrupted',
  });
  const resume = {
    respond: [{ toolResponse: { name: 'ask', ref: 'r', output: { answer: 'y' } } }],
  };
  const detached = await chat.run({ resume, detach: true }, { snapshotId });
  const ended = await chat.wait(must(detached.snapshotId));
  expect(ended).toMatchObject({ status: 'succeeded', finishReason: 'stop', parentId: snapshotId });
  expectValid(ended.state?.messages ?? []);
  await refused(chat.run({ resume, detach: true }, { snapshotId }), 'FAILED_PRECONDITION');
});

test('S27 S100 a custom agent sees the resume, and says itself whether it waits', async () => {
  await using app = openApp();
  const tool = defineAsk(app);
  const model = scriptedModel([{ toolCalls: [ask] }, 'thanks']);
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(async ({ resume }, { signal }) => {
      const { messages } = await app.generate({
        model,
        messages: session.messages,
        tools: [tool],
        signal,
        ...(resume && { resume }),
      });
      session.addMessages(...messages);
    }),
  );
  const { sessionId, finishReason } = await agent.runText('x');
  expect(finishReason).toBe('interrupted');
  const resume = {
    respond: [{ toolResponse: { name: 'ask', ref: 'r', output: { answer: 'y' } } }],
  };
  expect(await agent.run({ resume }, { sessionId })).toMatchObject({ finishReason: 'stop' });
});

test('S625 answers of interrupts are input of streamed and background turns, alone or as a list', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel([{ toolCalls: [ask] }, 'thanks', { toolCalls: [ask] }, 'thanks again']),
  });
  const asked = await chat.run('x');
  const { sessionId } = asked;
  const answers = asked.interrupts.map((request) => request.respond({ answer: 'yes' }));
  let text = '';
  for await (const piece of chat.stream({ resume: answers }, { sessionId }).textStream)
    text += piece;
  expect(text).toBe('thanks');
  const again = await chat.run('y', { sessionId });
  const handle = await chat.start({ resume: must(again.interrupts[0]).decline() }, { sessionId });
  expect((await handle.wait()).text).toBe('thanks again');
});

test('S625 what is no answer is refused, and the interrupt still waits', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    tools: [defineAsk(app)],
    model: scriptedModel([{ toolCalls: [ask] }, 'thanks']),
  });
  const asked = await chat.run('x');
  const { sessionId } = asked;
  for (const wrong of [undefined, null, true, {}]) {
    const calls = [
      () => chat.resume(asked, () => wrong as never),
      () => chat.run({ resume: [wrong as never] }, { sessionId }),
    ];
    for (const call of calls) {
      const { message } = await refused(call(), 'INVALID_ARGUMENT');
      expect(message).toContain('Return request.approve()');
    }
  }
  await refused(chat.resume(asked, true as never), 'INVALID_ARGUMENT');
  const done = await chat.resume(asked, (request) => request.respond({ answer: 'yes' }));
  expect(done.text).toBe('thanks');
});
