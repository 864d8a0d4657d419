import { afterEach, describe, expect, test } from 'vitest';
import {
  type AgentApi,
  agentTool,
  isTurnError,
  memoryStore,
  TurnError,
  toolApproval,
  waymark,
} from 'waymark';
import { createClient } from 'waymark/client';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { WebSocket } from 'ws';
import { z } from 'zod';

type Script = Parameters<typeof scriptedModel>[0];

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The agents of these tests, with their calls as one side of a wire sees them. */
type Open = (script: Script) => Promise<{
  readonly agent: (name: string) => AgentApi;
  readonly paid: unknown[];
  readonly seen: readonly { readonly messages: unknown }[];
}>;

function define(script: Script) {
  const model = scriptedModel(script);
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  const paid: unknown[] = [];
  const pay = app.defineTool(
    { name: 'pay', description: 'Pays', input: z.object({ euros: z.number() }) },
    ({ euros }, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ question: `Pay ${euros} €?` });
      paid.push(euros);
      return `paid ${euros}`;
    },
  );
  const city = app.defineInterrupt({
    name: 'city',
    description: 'Asks for a city',
    input: z.object({}),
    output: z.string(),
  });
  const remove = app.defineTool({ name: 'remove', description: 'Removes' }, () => {
    paid.push('removed');
    return 'removed';
  });
  const refund = app.defineTool(
    {
      name: 'refund',
      description: 'Refunds',
      input: z.object({ euros: z.number(), question: z.json().optional() }),
      output: z.object({ refunded: z.number() }),
      needsApproval: async ({ euros }) => euros > 10,
    },
    ({ euros, question }, { interrupt, resumed }) => {
      if (question !== undefined && resumed === undefined) interrupt(question);
      if (euros > 100 && resumed === true) interrupt('So much?');
      paid.push(euros);
      return { refunded: euros };
    },
  );
  app.defineAgent({ name: 'desk', tools: [refund] });
  app.defineAgent({ name: 'strict', tools: [refund], use: [toolApproval(['refund'])] });
  app.defineAgent({ name: 'chat' });
  app.defineAgent({ name: 'clerk', tools: [pay, city] });
  app.defineAgent({ name: 'careful', tools: [remove], use: [toolApproval(['remove'])] });
  const helper = app.defineAgent({ name: 'helper', description: 'Helps' });
  app.defineAgent({ name: 'boss', tools: [agentTool(helper)] });
  app.defineAgent({ name: 'held', store: false });
  app.defineAgent({ name: 'extractor', output: { schema: z.object({ days: z.number() }) } });
  return { app, paid, model };
}

const sides: Record<string, Open> = {
  'in process': async (script) => {
    const { app, paid, model } = define(script);
    return { agent: (name) => app.agent(name), paid, seen: model.requests };
  },
  'over http': (script) => overWire(script, 'http'),
  'over websocket': (script) => overWire(script, 'websocket'),
};

async function overWire(script: Script, transport: 'http' | 'websocket'): ReturnType<Open> {
  const { app, paid, model } = define(script);
  const server = await serve(app, { port: 0, log: () => {} });
  closers.push(() => server.close());
  const client = createClient({ url: server.url, transport, WebSocket });
  return { agent: (name) => client.agent(name), paid, seen: model.requests };
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe.each(Object.entries(sides))('S236 the everyday calls, %s', (side, open) => {
  test('S236 a turn takes a text, a message or an input, and its output has the text', async () => {
    const { agent } = await open(['one', 'two', 'three', { text: '' }]);
    const chat = agent('chat');
    const first = await chat.run('a');
    expect(first.text).toBe('one');
    const { sessionId } = first;
    const message = { role: 'user' as const, content: [{ text: 'b' }] };
    expect((await chat.run(message, { sessionId })).text).toBe('two');
    expect((await chat.run({ message }, { sessionId })).text).toBe('three');
    expect((await chat.run('d', { sessionId })).text).toBe('');
  });

  test('S237 what an output can be asked is not part of its JSON', async () => {
    const { agent } = await open(['one']);
    const output = await agent('chat').run('a');
    expect(Object.keys(output)).not.toContain('text');
    expect(JSON.parse(JSON.stringify(output))).not.toHaveProperty('interrupts');
    expect(output.interrupts).toEqual([]);
  });

  test('S238 a failed turn rejects with a TurnError, which has the output', async () => {
    const { agent } = await open(['fine', { error: new Error('my bug is here') }]);
    const chat = agent('chat');
    const good = await chat.run('a');
    const { sessionId } = good;
    const error: unknown = await chat.run('b', { sessionId }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TurnError);
    if (!isTurnError(error)) throw error;
    expect(error.output).toMatchObject({ finishReason: 'failed', snapshotId: good.snapshotId });
    if (side === 'in process') {
      expect(error.message).toContain('my bug is here');
      expect(error.cause).toMatchObject({ message: 'my bug is here' });
    } else expect(error.message).not.toMatch(/bug/);
    expect(JSON.stringify(error)).not.toMatch(/bug/);
  });

  test('S238 with throwOnError: false, and of a stream, it is a result', async () => {
    const { agent } = await open([{ error: new Error('no') }, { error: new Error('no') }]);
    const chat = agent('chat');
    expect(await chat.run('a', { throwOnError: false })).toMatchObject({ finishReason: 'failed' });
    expect(await chat.stream('a').output).toMatchObject({ finishReason: 'failed' });
  });

  test('S239 the text stream has the text of this agent only', async () => {
    const { agent } = await open([
      { toolCalls: [{ name: 'helper', input: { message: 'help' } }] },
      'of the helper',
      { chunks: ['of ', 'the boss'] },
    ]);
    const turn = agent('boss').stream('a');
    expect((await collect(turn.textStream)).join('')).toBe('of the boss');
    expect((await turn.output).text).toBe('of the boss');
  });

  test('S239 the text stream of a failed turn rejects at its end', async () => {
    const { agent } = await open([{ error: new Error('no') }]);
    await expect(collect(agent('chat').stream('a').textStream)).rejects.toBeInstanceOf(TurnError);
  });

  test('S240 an interrupt is approved, answered or declined', async () => {
    const call = { toolCalls: [{ name: 'pay', input: { euros: 5 } }] };
    const ask = { toolCalls: [{ name: 'city' }] };
    const { agent, paid, seen } = await open([call, 'thanks', ask, 'nice', call, 'a pity']);
    const clerk = agent('clerk');
    const asked = await clerk.run('pay');
    const { sessionId } = asked;
    expect(asked.finishReason).toBe('interrupted');
    expect(asked.interrupts).toMatchObject([
      { toolName: 'pay', input: { euros: 5 }, metadata: { question: 'Pay 5 €?' } },
    ]);
    const approved = await clerk.resume(
      asked,
      asked.interrupts.map((request) => request.approve()),
    );
    expect([approved.text, paid]).toEqual(['thanks', [5]]);
    const where = await clerk.run('where?', { sessionId });
    expect(
      (
        await clerk.resume(
          where,
          where.interrupts.map((each) => each.respond('Rome')),
        )
      ).text,
    ).toBe('nice');
    const again = await clerk.run('pay', { sessionId });
    const declined = await clerk.resume(
      again,
      [...again.interrupts].map((each) => each.decline('too much')),
    );
    expect([declined.text, paid]).toEqual(['a pity', [5]]);
    expect(JSON.stringify(seen.at(-1)?.messages)).toContain(
      'The user declined. The reason: too much',
    );
  });

  test('S240 a function answers each interrupt of an output, a session or a chat', async () => {
    const call = { toolCalls: [{ name: 'pay', input: { euros: 5 } }] };
    const { agent, paid } = await open([call, 'one', call, 'two', call, 'three', call, 'four']);
    const clerk = agent('clerk');
    const asked = await clerk.run('pay');
    const { sessionId } = asked;
    expect((await clerk.resume(asked, (request) => request.approve())).text).toBe('one');
    await clerk.run('pay', { sessionId });
    // As after a restart: all that is left is the id of the session.
    const input = { euros: 7 };
    const edited = await clerk.resume({ sessionId }, (request) => request.approve({ input }));
    expect([edited.text, paid]).toEqual(['two', [5, 7]]);
    const chat = clerk.chat();
    await chat.send('pay');
    expect((await chat.resume((request) => request.decline())).text).toBe('three');
    const held = clerk.chat({ sessionId });
    await held.send('pay');
    expect((await held.resume(({ input: given, ...request }) => request.respond(given))).text).toBe(
      'four',
    );
    expect(paid).toEqual([5, 7]);
    await expect(clerk.resume({ sessionId }, (request) => request.approve())).rejects.toMatchObject(
      {
        status: 'FAILED_PRECONDITION',
        message: `Cannot resume session "${sessionId}": no tool call waits for an answer.`,
      },
    );
    await expect(clerk.chat().resume((request) => request.approve())).rejects.toThrow(
      'Cannot resume a chat without a turn: no tool call waits for an answer.',
    );
  });

  test('S241 an interrupt is approved with edited input, which must fit the tool', async () => {
    const call = { toolCalls: [{ name: 'pay', input: { euros: 50 } }] };
    const { agent, paid } = await open([call, 'thanks']);
    const clerk = agent('clerk');
    const { sessionId } = await clerk.run('pay');
    // As after a restart: all that is left is the id of the session.
    const waiting = await clerk.getSession(sessionId);
    if (waiting === undefined) throw new Error('no session');
    const [request] = waiting.interrupts;
    if (request === undefined) throw new Error('no interrupt');
    const bad = request.approve({ input: { euros: 'many' } });
    await expect(clerk.resume(waiting, bad)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    const forged = request.approve({ input: { euros: 7 } });
    const other = { ...forged, metadata: { ...forged.metadata, replacedInput: { euros: 1 } } };
    await expect(clerk.resume(waiting, other)).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    const done = await clerk.resume(waiting, request.approve({ input: { euros: 7 } }));
    expect([done.text, paid]).toEqual(['thanks', [7]]);
  });

  test('S240 a declined approval does not run the tool', async () => {
    const { agent, paid } = await open([{ toolCalls: [{ name: 'remove' }] }, 'as you wish']);
    const careful = agent('careful');
    const asked = await careful.run('remove it');
    const done = await careful.resume(
      asked,
      asked.interrupts.map((each) => each.decline()),
    );
    expect([done.text, paid]).toEqual(['as you wish', []]);
  });

  describe('a tool that needs an approval', () => {
    const refund = (euros: number | string) => ({
      toolCalls: [{ name: 'refund', input: { euros } }],
    });
    const data = { approval: { tool: 'refund', input: { euros: 20 } } };

    test('S598 runs when its input needs none', async () => {
      const { agent, paid } = await open([refund(5), 'done']);
      expect((await agent('desk').run('refund')).text).toBe('done');
      expect(paid).toEqual([5]);
    });

    test('S598 is not asked for with an input that does not fit', async () => {
      const { agent, paid } = await open([refund('many'), 'sorry']);
      expect((await agent('desk').run('refund')).text).toBe('sorry');
      expect(paid).toEqual([]);
    });

    test.for(['desk', 'strict'])('S598 waits for it, once (%s)', async (name) => {
      const { agent, paid } = await open([refund(20), 'done']);
      const asked = await agent(name).run('refund');
      expect([asked.finishReason, paid]).toEqual(['interrupted', []]);
      expect(asked.interrupts[0]?.metadata).toEqual(data);
      const done = await agent(name).resume(asked, (request) => request.approve());
      expect([done.text, paid]).toEqual(['done', [20]]);
    });

    test('S598 does not run when it was declined', async () => {
      const { agent, paid, seen } = await open([refund(20), 'as you wish']);
      const asked = await agent('desk').run('refund');
      const done = await agent('desk').resume(asked, (request) => request.decline('Too much'));
      expect([done.text, paid]).toEqual(['as you wish', []]);
      expect(JSON.stringify(seen.at(-1))).toContain('Too much');
    });

    test('S598 is asked for when an answer to another question edits the input', async () => {
      const input = { euros: 5, question: { approval: true, approved: true } };
      const { agent, paid } = await open([{ toolCalls: [{ name: 'refund', input }] }, 'done']);
      const asked = await agent('desk').run('refund');
      expect(asked.interrupts[0]?.metadata).toEqual(input.question);
      const again = await agent('desk').resume(asked, (request) =>
        request.approve({ input: { euros: 20 } }),
      );
      expect([again.interrupts[0]?.metadata, paid]).toEqual([data, []]);
      const done = await agent('desk').resume(again, (request) => request.approve());
      expect([done.text, paid]).toEqual(['done', [20]]);
    });

    test('S598 may ask a question of its own after it', async () => {
      const { agent, paid } = await open([refund(500), 'done']);
      const asked = await agent('desk').run('refund');
      const again = await agent('desk').resume(asked, (request) => request.approve());
      expect(again.interrupts[0]?.metadata).toBe('So much?');
      const done = await agent('desk').resume(again, (request) =>
        request.approve({ resumed: 'yes' }),
      );
      expect([done.text, paid]).toEqual(['done', [500]]);
    });
  });

  test('S242 a snapshot is named by its id, itself, or the output of its turn', async () => {
    const { agent } = await open(['one', 'two', 'three']);
    const chat = agent('chat');
    const first = await chat.run('a');
    const second = await chat.run('b', { sessionId: first.sessionId });
    expect((await chat.getSnapshot(first))?.text).toBe('one');
    expect(await chat.diff(first, second)).toMatchObject({ from: first.snapshotId });
    const restored = await chat.restore(first);
    expect(restored.snapshotId).toBe(first.snapshotId);
    const fork = await chat.fork(restored);
    expect(fork.sessionId).not.toBe(first.sessionId);
    expect((await chat.label(second, 'kept')).label).toBe('kept');
    const branch = await chat.run('c', { from: first });
    const { state } = (await chat.getSnapshot(branch)) ?? {};
    expect(state?.messages).toHaveLength(4);
    await expect(chat.run('d', { from: first, snapshotId: 'x' })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  });

  test('S243 a run is started in the background, and attached to from anywhere', async () => {
    const { agent } = await open([
      'one',
      { chunks: ['never'], hang: true },
      { error: new Error('no') },
    ]);
    const chat = agent('chat');
    const run = await chat.start('a');
    const done = await run.wait();
    expect([done.text, done.sessionId, await run.status()]).toEqual([
      'one',
      run.sessionId,
      'succeeded',
    ]);
    const hanging = await chat.start('b');
    const same = chat.attach(hanging.id);
    for await (const event of same.watch()) {
      if (event.type === 'chunk' && event.chunk.modelChunk !== undefined) break;
    }
    expect(await same.abort()).toBe('aborted');
    expect(await same.wait()).toMatchObject({ finishReason: 'aborted' });
    const failing = await chat.start('c');
    await expect(failing.wait()).rejects.toBeInstanceOf(TurnError);
    expect(await failing.wait({ throwOnError: false })).toMatchObject({ finishReason: 'failed' });
    expect(await chat.attach(crypto.randomUUID()).status()).toBeUndefined();
  });

  test('S244 a chat has the same calls', async () => {
    const call = { toolCalls: [{ name: 'pay', input: { euros: 5 } }] };
    const { agent, paid } = await open([
      'one',
      'two',
      call,
      'thanks',
      'later',
      { error: new Error('no') },
    ]);
    const talk = agent('clerk').chat();
    expect((await talk.send('a')).text).toBe('one');
    expect((await collect(talk.stream('b').textStream)).join('')).toBe('two');
    const asked = await talk.send('pay');
    expect((await talk.resume(asked.interrupts.map((each) => each.approve()))).text).toBe('thanks');
    expect(paid).toEqual([5]);
    const run = await talk.start('c');
    expect((await run.wait()).text).toBe('later');
    await expect(talk.send('d')).rejects.toBeInstanceOf(TurnError);
    const session = await agent('clerk').getSession(talk.sessionId ?? '');
    expect(session?.text).toBe('later');
  });

  test('S244 an agent without a store is resumed from its output', async () => {
    const { agent } = await open(['one', 'two']);
    const held = agent('held');
    const first = await held.run('a');
    const second = await held.run('b', { from: first });
    expect(second.state?.messages).toHaveLength(4);
    expect(held.chat({ from: second }).snapshotId).toBeUndefined();
    await expect(held.restore(first)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  test('S245 an option that does not exist is refused, with the one that was meant', async () => {
    const { agent } = await open([]);
    const options = { sessionid: 's' } as object;
    await expect(agent('chat').run('a', options)).rejects.toThrow(
      'Unknown option "sessionid" of a turn. Did you mean "sessionId"?',
    );
    expect(() => agent('chat').streamBidi(options)).toThrow(/Did you mean "sessionId"/);
  });

  test('an empty input and an array say what is expected', async () => {
    const { agent } = await open([]);
    await expect(agent('chat').run('')).rejects.toThrow(/input is empty/);
    await expect(agent('chat').run(['a', 'b'] as never)).rejects.toThrow(/Pass one input per call/);
  });
});

test('S245 options of an app and of its agents are checked when they are given', () => {
  expect(() => waymark({ modle: 'x' } as object)).toThrow(
    'Unknown option "modle" of waymark(). Did you mean "model"?',
  );
  const app = waymark({ store: memoryStore() });
  closers.push(() => app.close());
  const mistyped = { name: 'chat', sytem: 'Be brief.' } as { name: string };
  expect(() => app.defineAgent(mistyped)).toThrow(
    'Unknown option "sytem" of agent "chat". Did you mean "system"?',
  );
  const odd = { name: 'chat', temperature: 1 } as { name: string };
  expect(() => app.defineCustomAgent(odd, () => undefined)).toThrow(
    /The options are: clientState, /,
  );
});
