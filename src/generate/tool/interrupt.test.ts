import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Action } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { createRegistry } from '../../core/registry.ts';
import { systemClock } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import { openToolRequests, pendingInterrupts } from '../../protocol/messages.ts';
import type { Resume } from '../../protocol/turn.ts';
import { type ScriptStep, scriptedModel } from '../../testing/scripted-model.ts';
import { createGenerator } from '../generator.ts';
import { toolApproval } from '../middleware/tool-approval.ts';
import { modelMessage, userMessage } from '../template.ts';
import { interrupt, tool } from './tool.ts';

function setUp(script: readonly ScriptStep[] = []) {
  const model = scriptedModel(script);
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'id',
    model,
  });
  return { app, model };
}

async function failure(promise: Promise<unknown>): Promise<WaymarkError> {
  return promise.then(
    () => expect.unreachable('should have failed'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(WaymarkError);
      return error as WaymarkError;
    },
  );
}

const payments: Json[] = [];
const pay = tool(
  { name: 'pay', description: 'Pays', input: z.object({ amount: z.number() }) },
  ({ amount }, { interrupt: ask, resumed }) => {
    if (resumed === undefined) ask({ confirm: amount });
    payments.push({ amount, resumed: resumed ?? null });
    return { paid: amount };
  },
);
const ask = interrupt({
  name: 'ask',
  description: 'Asks the user',
  input: z.object({ question: z.string() }),
  output: z.object({ answer: z.string() }),
});
const zero = tool({ name: 'zero', description: 'd' }, () => 0);

const payCall = { name: 'pay', ref: 'p1', input: { amount: 5 } };
const payRequest = { toolRequest: payCall };

/** A conversation in which `pay` waits, and `zero` is done. */
async function interruptedConversation() {
  const { app, model } = setUp([
    { text: 'Let me see.', toolCalls: [payCall, { name: 'zero', ref: 'z1' }] },
  ]);
  const asked = userMessage('Pay 5');
  const response = await app.generate({ messages: [asked], tools: [pay, zero] });
  return { app, model, response, messages: [asked, ...response.messages] };
}

describe('an interrupt', () => {
  test('ends the call, says what is asked, and keeps what siblings came to', async () => {
    const { response } = await interruptedConversation();
    expect(response.finishReason).toBe('interrupted');
    expect(response.messages).toEqual([
      modelMessage([
        { text: 'Let me see.' },
        { ...payRequest, metadata: { interrupt: { confirm: 5 } } },
        { toolRequest: { name: 'zero', ref: 'z1', input: {} }, metadata: { pendingOutput: 0 } },
      ]),
    ]);
    expect(response.interrupts).toEqual([
      { ...payRequest, metadata: { interrupt: { confirm: 5 } } },
    ]);
    expect(response.output).toBeUndefined();
  });

  test('without data is true', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'wait', ref: '1' }] }]);
    const wait = tool({ name: 'wait', description: 'd' }, (_, context) => context.interrupt());
    const { interrupts } = await app.generate({ prompt: 'x', tools: [wait] });
    expect(interrupts[0]?.metadata).toEqual({ interrupt: true });
  });

  test('stands even when the tool catches it', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'sly', ref: '1' }] }]);
    const sly = tool({ name: 'sly', description: 'd' }, (_, context) => {
      try {
        context.interrupt();
      } catch {
        return 'did it anyway';
      }
    });
    const { finishReason } = await app.generate({ prompt: 'x', tools: [sly] });
    expect(finishReason).toBe('interrupted');
  });

  test('keeps the error of a sibling as an error', async () => {
    const { app, model } = setUp([{ toolCalls: [payCall, { name: 'bad', ref: 'b' }] }]);
    const bad = tool({ name: 'bad', description: 'd' }, () => {
      throw new Error('no luck');
    });
    const first = await app.generate({ prompt: 'x', tools: [pay, bad] });
    model.add('ok');
    const { messages } = await app.generate({
      messages: first.messages,
      tools: [pay, bad],
      resume: { restart: [payRequest] },
    });
    expect(messages[0]?.content[1]).toEqual({
      toolResponse: { name: 'bad', ref: 'b', output: 'no luck' },
      metadata: { error: { status: 'UNKNOWN' } },
    });
  });

  test('defined by itself takes an answer that fits, and shows what was asked', async () => {
    const { app, model } = setUp([
      { toolCalls: [{ name: 'ask', ref: 'a', input: { question: 'Red?' } }] },
    ]);
    const { messages } = await app.generate({ prompt: 'x', tools: [ask] });
    model.add('Red it is.');
    const respond = (output: Json): Resume => ({
      respond: [{ toolResponse: { name: 'ask', ref: 'a', output } }],
    });
    const error = await failure(
      app.generate({ messages, tools: [ask], resume: respond({ wrong: 1 }) }),
    );
    expect(error.status).toBe('INVALID_ARGUMENT');
    const response = await app.generate({
      messages,
      tools: [ask],
      resume: respond({ answer: 'yes' }),
    });
    expect(response.text).toBe('Red it is.');
    expect(response.messages[0]?.content).toEqual([
      { toolResponse: { name: 'ask', ref: 'a', output: { answer: 'yes' } } },
    ]);
  });

  test('can show something else than its input', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'choose', ref: 'c', input: { n: 2 } }] }]);
    const choose = interrupt({
      name: 'choose',
      description: 'd',
      input: z.object({ n: z.number() }),
      request: ({ n }) => ({ options: n * 2 }),
    });
    const { interrupts } = await app.generate({ prompt: 'x', tools: [choose] });
    expect(interrupts[0]?.metadata).toEqual({ interrupt: { options: 4 } });
  });
});

describe('resuming', () => {
  test('with an answer adds one tool message behind, and changes nothing before it', async () => {
    const { app, model, messages } = await interruptedConversation();
    model.add('Done.');
    const stored = structuredClone(messages);
    const response = await app.generate({
      messages,
      tools: [pay, zero],
      resume: { respond: [{ toolResponse: { name: 'pay', ref: 'p1', output: false } }] },
    });
    expect(response.messages).toEqual([
      {
        role: 'tool',
        content: [
          { toolResponse: { name: 'pay', ref: 'p1', output: false } },
          { toolResponse: { name: 'zero', ref: 'z1', output: 0 } },
        ],
      },
      modelMessage('Done.'),
    ]);
    expect(messages).toEqual(stored);
    expect(model.requests[1]?.messages).toEqual([...messages, response.messages[0]]);
  });

  test('with a restart runs the tool again, with what the restart brought', async () => {
    const { app, model, messages } = await interruptedConversation();
    model.add('Paid.');
    payments.length = 0;
    const { messages: added } = await app.generate({
      messages,
      tools: [pay, zero],
      resume: { restart: [{ ...payRequest, metadata: { resumed: { by: 'ann' } } }] },
    });
    expect(payments).toEqual([{ amount: 5, resumed: { by: 'ann' } }]);
    expect(added[0]?.content[0]).toEqual({
      toolResponse: { name: 'pay', ref: 'p1', output: { paid: 5 } },
    });
  });

  test('without anything to bring, a restarted tool still sees that it was resumed', async () => {
    const { app, model, messages } = await interruptedConversation();
    model.add('Paid.');
    payments.length = 0;
    await app.generate({ messages, tools: [pay, zero], resume: { restart: [payRequest] } });
    expect(payments).toEqual([{ amount: 5, resumed: true }]);
  });

  test('what stands after the conversation goes where it went the first time', async () => {
    const { app, model, messages } = await interruptedConversation();
    model.add('Done.');
    const after = [userMessage('Be brief.')];
    await app.generate({ messages, after, tools: [pay, zero], resume: { restart: [payRequest] } });
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'user',
      'model',
      'tool',
    ]);
  });

  test('a tool that is interrupted again can be answered next', async () => {
    const twice = tool({ name: 'twice', description: 'd' }, (_, context) => {
      if (context.resumed !== 'second') context.interrupt({ step: context.resumed ?? 'first' });
      return 'finally';
    });
    const { app, model } = setUp([
      { toolCalls: [{ name: 'twice', ref: 't' }, payCall, { name: 'zero', ref: 'z' }] },
    ]);
    const tools = [twice, pay, zero];
    const first = await app.generate({ prompt: 'x', tools });
    const twiceRequest = { toolRequest: { name: 'twice', ref: 't', input: {} } };
    const second = await app.generate({
      messages: first.messages,
      tools,
      resume: { restart: [{ ...twiceRequest, metadata: { resumed: 'next' } }, payRequest] },
    });
    expect(second.finishReason).toBe('interrupted');
    expect(second.interrupts).toEqual([
      { ...twiceRequest, metadata: { interrupt: { step: 'next' } } },
    ]);
    const messages = [...first.messages, ...second.messages];
    expect(pendingInterrupts(messages)).toEqual(second.interrupts);
    expect(model.requests).toHaveLength(1);

    const again = app.generate({ messages, tools, resume: { restart: [payRequest] } });
    expect((await failure(again)).status).toBe('FAILED_PRECONDITION');

    model.add('ok');
    const third = await app.generate({
      messages,
      tools,
      resume: { restart: [{ ...twiceRequest, metadata: { resumed: 'second' } }] },
    });
    expect(third.text).toBe('ok');
    expect(openToolRequests([...messages, ...third.messages.slice(0, 1)])).toEqual([]);
  });

  test.each<[string, Resume]>([
    ['nothing', {}],
    [
      'an answer to a tool that was not asked for',
      { respond: [{ toolResponse: { name: 'x', ref: 'p1', output: 1 } }] },
    ],
    [
      'an answer with another ref',
      { respond: [{ toolResponse: { name: 'pay', ref: 'p2', output: 1 } }] },
    ],
    ['an answer without a ref', { respond: [{ toolResponse: { name: 'pay', output: 1 } }] }],
    [
      'a restart with another input',
      { restart: [{ toolRequest: { ...payCall, input: { amount: 50 } } }] },
    ],
    ['a restart without the input', { restart: [{ toolRequest: { name: 'pay', ref: 'p1' } }] }],
    [
      'an answer to a sibling that is done',
      { respond: [{ toolResponse: { name: 'zero', ref: 'z1', output: 9 } }] },
    ],
    [
      'two answers to one request',
      { respond: [{ toolResponse: { name: 'pay', ref: 'p1', output: 1 } }], restart: [payRequest] },
    ],
  ])('%s is INVALID_ARGUMENT, and nothing runs', async (_, resume) => {
    const { app, model, messages } = await interruptedConversation();
    payments.length = 0;
    const error = await failure(app.generate({ messages, tools: [pay, zero], resume }));
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(payments).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  test('must cover every interrupt', async () => {
    const { app } = setUp([{ toolCalls: [payCall, { ...payCall, ref: 'p2' }] }]);
    const { messages } = await app.generate({ prompt: 'x', tools: [pay] });
    const error = await failure(
      app.generate({ messages, tools: [pay], resume: { restart: [payRequest] } }),
    );
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(error.message).toContain('"p2"');
  });

  test('where nothing waits is INVALID_ARGUMENT', async () => {
    const { app } = setUp();
    const messages: Message[] = [userMessage('x'), modelMessage('y')];
    const error = await failure(app.generate({ messages, resume: { restart: [payRequest] } }));
    expect(error.status).toBe('INVALID_ARGUMENT');
  });

  test('what has its answer already is FAILED_PRECONDITION', async () => {
    const { app, model, messages } = await interruptedConversation();
    model.add('Done.');
    const resume: Resume = { restart: [payRequest] };
    const { messages: added } = await app.generate({ messages, tools: [pay, zero], resume });
    for (const count of [1, 2]) {
      const error = await failure(
        app.generate({
          messages: [...messages, ...added.slice(0, count)],
          tools: [pay, zero],
          resume,
        }),
      );
      expect(error.status).toBe('FAILED_PRECONDITION');
    }
  });

  test('a restart that is stopped leaves a conversation without open requests', async () => {
    const { app, messages } = await interruptedConversation();
    const controller = new AbortController();
    const started = Promise.withResolvers<void>();
    const slowPay = tool({ name: 'pay', description: 'd' }, () => {
      started.resolve();
      return new Promise(() => {});
    });
    const run = app.generateStream({
      messages,
      tools: [slowPay, zero],
      resume: { restart: [payRequest] },
      signal: controller.signal,
    });
    await started.promise;
    controller.abort();
    await failure(run.response);
    expect(openToolRequests([...messages, ...run.messages])).toEqual([]);
    expect(run.messages[0]?.content[1]).toEqual({
      toolResponse: { name: 'zero', ref: 'z1', output: 0 },
    });
  });

  test('any result of a sibling survives, whatever JSON it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const { app, model } = setUp([{ toolCalls: [payCall, { name: 'any', ref: 'a' }] }, 'ok']);
        // JSON texts have no -0.
        const expected = JSON.parse(JSON.stringify(value));
        const any = tool({ name: 'any', description: 'd' }, () => value);
        const first = await app.generate({ prompt: 'x', tools: [pay, any] });
        // As after a restart of the process.
        const messages = JSON.parse(JSON.stringify(first.messages));
        const resumed = await app.generate({
          messages,
          tools: [pay, any],
          resume: { restart: [payRequest] },
        });
        expect(model.requests).toHaveLength(2);
        expect(resumed.messages[0]?.content[1]).toEqual({
          toolResponse: { name: 'any', ref: 'a', output: expected },
        });
      }),
      { numRuns: 50 },
    );
  });
});

describe('tool approval', () => {
  const run = vi.fn(() => 'deleted');
  const erase = tool({ name: 'erase', description: 'd' }, run);
  const eraseRequest = { toolRequest: { name: 'erase', ref: 'e', input: {} } };
  const use = [toolApproval(['erase'])];

  async function asked() {
    run.mockClear();
    const { app, model } = setUp([
      {
        toolCalls: [
          { name: 'erase', ref: 'e' },
          { name: 'zero', ref: 'z' },
        ],
      },
    ]);
    const { messages, interrupts } = await app.generate({ prompt: 'x', tools: [erase, zero], use });
    model.add('ok');
    const resume = (resumed?: Json) =>
      app.generate({
        messages,
        tools: [erase, zero],
        use,
        resume: {
          restart: [{ ...eraseRequest, ...(resumed !== undefined && { metadata: { resumed } }) }],
        },
      });
    return { interrupts, resume };
  }

  test('stops a tool before it runs, and says what for', async () => {
    const { interrupts } = await asked();
    expect(run).not.toHaveBeenCalled();
    expect(interrupts).toEqual([
      {
        ...eraseRequest,
        metadata: { approval: 'asked', interrupt: { approval: { tool: 'erase', input: {} } } },
      },
    ]);
  });

  test.each([[undefined], [true], [{ approved: true }]])(
    'lets it run when told %j',
    async (resumed) => {
      const { resume } = await asked();
      const { messages } = await resume(resumed);
      expect(run).toHaveBeenCalledTimes(1);
      expect(messages[0]?.content[0]).toMatchObject({ toolResponse: { output: 'deleted' } });
    },
  );

  test.each([[false], ['yes'], [{ approved: 'true' }], [{ approved: false, reason: 'too risky' }]])(
    'does not when told %j',
    async (resumed) => {
      const { resume } = await asked();
      const { messages } = await resume(resumed);
      expect(run).not.toHaveBeenCalled();
      expect(messages[0]?.content[0]).toMatchObject({
        metadata: { error: { status: 'PERMISSION_DENIED' } },
      });
    },
  );

  test('may depend on what is asked', async () => {
    run.mockClear();
    const { app } = setUp([
      { toolCalls: [{ name: 'erase', ref: 'e', input: { all: false } }] },
      'ok',
    ]);
    const rule = toolApproval(({ input }) => (input as { all: boolean }).all);
    await app.generate({ prompt: 'x', tools: [erase], use: [rule] });
    expect(run).toHaveBeenCalledTimes(1);
  });
});
