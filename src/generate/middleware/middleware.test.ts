import { describe, expect, test } from 'vitest';
import type { Action } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import { createRegistry } from '../../core/registry.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { type ScriptStep, scriptedModel } from '../../testing/scripted-model.ts';
import { createGenerator } from '../generator.ts';
import { modelMessage, userMessage } from '../template.ts';
import { tool } from '../tool/tool.ts';
import type { Middleware } from './middleware.ts';
import { fallback, retry } from './retry.ts';

function setUp(script: readonly ScriptStep[]) {
  const clock = fakeClock();
  const model = scriptedModel(script, { clock });
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock,
    newId: () => 'id',
    model,
  });
  return { app, model, clock };
}

const overloaded = (details = {}): WaymarkError =>
  new WaymarkError('UNAVAILABLE', 'overloaded', { details: { retryable: true, ...details } });
const refused = new WaymarkError('INVALID_ARGUMENT', 'bad', { details: { retryable: false } });

async function statusOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: unknown) => (error as WaymarkError).status,
  );
}

describe('retry', () => {
  const random = (): number => 1;

  test('asks again after longer and longer waits, and answers when it can', async () => {
    const { app, model, clock } = setUp([{ error: overloaded() }, { error: overloaded() }, 'ok']);
    const response = app.generate({ prompt: 'x', use: [retry({ delay: 100, random })] });
    await clock.advance(99);
    expect(model.requests).toHaveLength(1);
    await clock.advance(1);
    expect(model.requests).toHaveLength(2);
    await clock.advance(199);
    expect(model.requests).toHaveLength(2);
    await clock.advance(1);
    expect((await response).text).toBe('ok');
  });

  test('waits as long as the provider asks, up to its own limit', async () => {
    const { app, model, clock } = setUp([{ error: overloaded({ retryAfterMs: 5000 }) }, 'ok']);
    const response = app.generate({
      prompt: 'x',
      use: [retry({ delay: 1, random, maxDelay: 4000 })],
    });
    await clock.advance(3999);
    expect(model.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await response).text).toBe('ok');
  });

  test('gives up after its attempts, with the last error', async () => {
    const { app, model, clock } = setUp([0, 1, 2].map((n) => ({ error: overloaded({ n }) })));
    const outcome = app
      .generate({ prompt: 'x', use: [retry({ attempts: 2, delay: 1, random })] })
      .then(
        () => expect.unreachable(),
        (error: unknown) => error,
      );
    await clock.advance(10);
    expect(await outcome).toMatchObject({ details: { n: 1 } });
    expect(model.requests).toHaveLength(2);
  });

  test.each<[string, ScriptStep]>([
    ['an error that will not pass', { error: refused }],
    ['an answer that was heard in part', { chunks: ['Hel'], error: overloaded() }],
  ])('does not ask again after %s', async (_, step) => {
    const { app, model } = setUp([step, 'ok']);
    expect(await statusOf(app.generate({ prompt: 'x', use: [retry()] }))).not.toBe('ok');
    expect(model.requests).toHaveLength(1);
  });

  test('is ended by the signal while it waits', async () => {
    const { app, clock } = setUp([{ error: overloaded() }, 'ok']);
    const controller = new AbortController();
    const outcome = statusOf(
      app.generate({ prompt: 'x', use: [retry()], signal: controller.signal }),
    );
    await clock.advance(1);
    controller.abort();
    expect(await outcome).toBe('CANCELLED');
  });
});

describe('fallback', () => {
  test('asks the next model, and says which one answered', async () => {
    const { app } = setUp([{ error: overloaded() }]);
    const second = scriptedModel([{ error: overloaded() }], { name: 'second' });
    app.defineModel({ name: 'third' }, async () => ({
      message: modelMessage('third'),
      finishReason: 'stop',
    }));
    const response = await app.generate({ prompt: 'x', use: [fallback([second, 'third'])] });
    expect(response).toMatchObject({ text: 'third', model: 'third' });
    expect(second.requests).toHaveLength(1);
  });

  test('is not for what is wrong with the request', async () => {
    const { app } = setUp([{ error: refused }]);
    const second = scriptedModel(['ok']);
    expect(await statusOf(app.generate({ prompt: 'x', use: [fallback([second])] }))).toBe(
      'INVALID_ARGUMENT',
    );
    expect(second.requests).toEqual([]);
  });

  test('is not for an answer that was heard in part', async () => {
    const { app } = setUp([{ chunks: ['Hel'], error: overloaded() }]);
    const second = scriptedModel(['ok']);
    expect(await statusOf(app.generate({ prompt: 'x', use: [fallback([second])] }))).toBe(
      'UNAVAILABLE',
    );
  });

  test('goes with retry', async () => {
    const { app, model, clock } = setUp([{ error: overloaded() }, { error: overloaded() }]);
    const second = scriptedModel(['ok']);
    const response = app.generate({
      prompt: 'x',
      use: [fallback([second]), retry({ attempts: 2, delay: 1 })],
    });
    await clock.advance(10);
    expect((await response).text).toBe('ok');
    expect(model.requests).toHaveLength(2);
  });
});

describe('middleware of one’s own', () => {
  test('wraps calls in the order of the list, and can change requests and responses', async () => {
    const { app, model } = setUp([{ toolCalls: [{ name: 'add', input: { n: 1 } }] }, 'ok']);
    const events: string[] = [];
    const note = (name: string): Middleware => ({
      async model(step, next) {
        events.push(`${name} in`);
        const messages = [...step.request.messages, userMessage(name)];
        const response = await next({ ...step, request: { ...step.request, messages } });
        events.push(`${name} out`);
        return response;
      },
      async tool(step, next) {
        const output = await next({ ...step, request: { ...step.request, input: { n: 10 } } });
        return [name, output];
      },
    });
    const add = tool({ name: 'add', description: 'd' }, ({ n }) => Number(n) + 1);
    const { messages } = await app.generate({
      prompt: 'x',
      tools: [add],
      use: [note('outer'), note('inner')],
    });
    expect(events.slice(0, 4)).toEqual(['outer in', 'inner in', 'inner out', 'outer out']);
    expect(model.requests[0]?.messages).toEqual(
      ['x', 'outer', 'inner'].map((text) => userMessage(text)),
    );
    expect(messages[1]?.content).toMatchObject([
      { toolResponse: { output: ['outer', ['inner', 11]] } },
    ]);
  });
});
