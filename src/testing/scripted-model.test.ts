import { describe, expect, test } from 'vitest';
import type { ModelCall, ModelRequest } from '../generate/model.ts';
import { userMessage } from '../generate/template.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { fakeClock } from './fake-clock.ts';
import { scriptedModel } from './scripted-model.ts';

const say = (text: string): ModelRequest => ({ messages: [userMessage(text)], tools: [] });

function listen(signal = new AbortController().signal): ModelCall & { chunks: ModelChunk[] } {
  const chunks: ModelChunk[] = [];
  return { chunks, signal, context: {}, stream: (chunk) => void chunks.push(chunk) };
}

describe('a script', () => {
  test('is said reply by reply, and what was asked is remembered', async () => {
    const model = scriptedModel(['one', ({ messages }, call) => `${call}: ${messages.length}`]);
    expect((await model.run(say('a'), listen())).message.content).toEqual([{ text: 'one' }]);
    expect((await model.run(say('b'), listen())).message.content).toEqual([{ text: '1: 1' }]);
    expect(model.requests).toEqual([say('a'), say('b')]);
  });

  test('that has ended is an error, until it is added to', async () => {
    const model = scriptedModel([], { name: 'short' });
    await expect(model.run(say('a'), listen())).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('"short" has only 0 replies'),
    });
    model.add('never', 'more');
    expect((await model.run(say('a'), listen())).message.content).toEqual([{ text: 'more' }]);
  });

  test('can say everything a model can say', async () => {
    const model = scriptedModel([
      {
        reasoning: 'hm',
        chunks: ['a', 'b'],
        parts: [{ media: { url: 'data:,x' } }],
        toolCalls: [
          { name: 't', input: { n: 1 } },
          { name: 't', ref: 'own' },
        ],
        finishReason: 'length',
        usage: { totalTokens: 9 },
      },
    ]);
    const call = listen();
    expect(await model.run(say('x'), call)).toEqual({
      message: {
        role: 'model',
        content: [
          { reasoning: 'hm' },
          { text: 'ab' },
          { media: { url: 'data:,x' } },
          { toolRequest: { name: 't', ref: 'call-1', input: { n: 1 } } },
          { toolRequest: { name: 't', ref: 'own', input: {} } },
        ],
      },
      finishReason: 'length',
      usage: { totalTokens: 9 },
    });
    expect(call.chunks).toHaveLength(6);
  });

  test('counts a token for four characters of the messages and the answer', async () => {
    const model = scriptedModel(['a'.repeat(400), 'a'.repeat(400)]);
    const used = async (text: string) => (await model.run(say(text), listen())).usage ?? {};
    const short = await used('x');
    expect(short.outputTokens).toBeGreaterThanOrEqual(100);
    expect(short.outputTokens).toBeLessThan(110);
    const long = await used('x'.repeat(4_000));
    expect(Number(long.inputTokens) - Number(short.inputTokens)).toBe(1_000);
    expect(long.totalTokens).toBe(Number(long.inputTokens) + Number(long.outputTokens));
  });

  test('takes its time from the clock', async () => {
    const clock = fakeClock();
    const model = scriptedModel([{ chunks: ['a', 'b'], delay: 100, chunkDelay: 50 }], {
      clock,
    });
    const call = listen();
    const response = model.run(say('x'), call);
    await clock.advance(100);
    expect(call.chunks).toHaveLength(1);
    await clock.advance(50);
    await response;
    expect(call.chunks).toHaveLength(2);
  });

  test('can fail, and can never end until it is stopped', async () => {
    const model = scriptedModel([
      { text: 'a', error: new Error('x') },
      { text: 'a', hang: true },
    ]);
    const failing = listen();
    await expect(model.run(say('x'), failing)).rejects.toThrow('x');
    expect(failing.chunks).toHaveLength(1);
    const controller = new AbortController();
    const hanging = model.run(say('x'), listen(controller.signal));
    controller.abort();
    await expect(hanging).rejects.toMatchObject({ status: 'CANCELLED' });
    expect(model.stops).toBe(1);
  });
});

describe('patterns', () => {
  const model = scriptedModel({
    patterns: [
      [
        /weather in (\w+)/i,
        (match) => ({ toolCalls: [{ name: 'weather', input: { city: match[1] ?? '' } }] }),
      ],
      [/hello/i, 'Hello to you!'],
    ],
    otherwise: ({ messages }) => `I know ${messages.length} messages.`,
  });

  test('answer what the user said last', async () => {
    const content = async (text: string) => (await model.run(say(text), listen())).message.content;
    expect(await content('Hello?')).toEqual([{ text: 'Hello to you!' }]);
    expect(await content('Weather in Rome?')).toMatchObject([
      { toolRequest: { name: 'weather', input: { city: 'Rome' } } },
    ]);
    expect(await content('What?')).toEqual([{ text: 'I know 1 messages.' }]);
  });

  test('say what tools have answered', async () => {
    const messages: ModelRequest['messages'] = [
      userMessage('Weather in Rome?'),
      { role: 'model', content: [{ toolRequest: { name: 'weather', ref: '1' } }] },
      { role: 'tool', content: [{ toolResponse: { name: 'weather', ref: '1', output: 'Sunny' } }] },
    ];
    const { message } = await model.run({ messages, tools: [] }, listen());
    expect(message.content).toEqual([{ text: 'Sunny' }]);
  });
});
