import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Action } from '../../src/core/action.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { createIds } from '../../src/core/id.ts';
import type { Json } from '../../src/core/json/json.ts';
import { createRegistry } from '../../src/core/registry.ts';
import { systemClock } from '../../src/core/time.ts';
import { createGenerator } from '../../src/generate/generator.ts';
import type { LanguageModel } from '../../src/generate/language-model/types.ts';
import { retry } from '../../src/generate/middleware/retry.ts';
import { modelMessage, userMessage } from '../../src/generate/template.ts';
import { openToolRequests } from '../../src/protocol/messages.ts';
import { startWireServer, type WireAnswer, type WireServer } from './wire-server.ts';

/** How a provider writes things down. */
export interface ProviderWire {
  readonly name: string;
  /** Its real package, pointed at the loopback server. */
  model(url: string): LanguageModel;
  /** The body of an answer that says a text in pieces; without an end when it is cut off. */
  text(pieces: readonly string[], options?: { readonly cut?: boolean }): string;
  /** The body of an answer that asks for tools. */
  toolCalls(
    calls: readonly { readonly id: string; readonly name: string; readonly input: Json }[],
  ): string;
  /** The body of an answer that fails in the middle. */
  failing(pieces: readonly string[]): string;
  /** The body of an error response. */
  error(status: number, message: string): string;
  /** The body of the error response to a request that is longer than the model's context, as the provider documents it. */
  readonly tooLong: string;
  /** What a request says about its tools: names. */
  toolNames(request: unknown): readonly string[];
  /** What a request tells the model that tools have answered, in the order of the calls. */
  toolResults(request: unknown): readonly unknown[];
  /** The JSON Schema that a request wants the answer to fit. */
  outputSchema(request: unknown): unknown;
}

const pieces = ['Grüße aus ', '東京 — ', '👩‍👩‍👧 ', 'fertig.'];
const whole = pieces.join('');

function createApp() {
  return createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: createIds(systemClock),
  });
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

/** What every provider must do over its real wire format. */
export function providerContract(wire: ProviderWire): void {
  const app = createApp();

  async function open(
    ...answers: readonly WireAnswer[]
  ): Promise<WireServer & { model: LanguageModel }> {
    const server = await startWireServer(answers);
    return Object.assign(server, { model: wire.model(server.url) });
  }

  const weather = app.defineTool(
    {
      name: 'weather',
      description: 'Weather of a city',
      input: z.object({ city: z.string() }),
    },
    async ({ city }) => (city === 'Zürich' ? { sky: '☀️', degrees: 21 } : 0),
  );

  describe(wire.name, () => {
    test('streams a text whose characters are split between network chunks', async () => {
      await using server = await open({ body: wire.text(pieces) });
      const run = app.generateStream({
        model: server.model,
        system: 'Sei nett.',
        prompt: 'Grüß mich',
      });
      let heard = '';
      for await (const chunk of run.stream) heard += chunk.text;
      expect(heard).toBe(whole);
      const response = await run.response;
      expect(response.text).toBe(whole);
      expect(response.finishReason).toBe('stop');
      expect(response.usage).toMatchObject({ inputTokens: 11, outputTokens: 7, totalTokens: 18 });
      expect(JSON.stringify(server.requests[0])).toContain('Sei nett.');
    });

    test('runs a tool call of two steps, and the next turn goes on from it', async () => {
      await using server = await open(
        {
          body: wire.toolCalls([
            { id: 'call_1', name: 'weather', input: { city: 'Zürich' } },
            { id: 'call_2', name: 'weather', input: { city: 'Łódź' } },
          ]),
        },
        { body: wire.text(['21° ☀️']) },
        { body: wire.text(['Gern.']) },
      );
      const asked = userMessage('Wetter?');
      const { model } = server;
      const response = await app.generate({ model, messages: [asked], tools: [weather] });
      expect(response.text).toBe('21° ☀️');
      expect(response.messages.map(({ role }) => role)).toEqual(['model', 'tool', 'model']);
      expect(response.messages[1]?.content).toMatchObject([
        { toolResponse: { name: 'weather', output: { sky: '☀️', degrees: 21 } } },
        { toolResponse: { name: 'weather', output: 0 } },
      ]);
      expect(response.usage.totalTokens).toBe(36);
      expect(wire.toolNames(server.requests[0])).toEqual(['weather']);
      expect(wire.toolResults(server.requests[1])).toEqual([{ sky: '☀️', degrees: 21 }, 0]);

      // As a stored conversation: through JSON, and with a further turn.
      const stored = JSON.parse(JSON.stringify([asked, ...response.messages]));
      const next = await app.generate({
        model,
        messages: stored,
        prompt: 'Danke',
        tools: [weather],
      });
      expect(next.text).toBe('Gern.');
      expect(wire.toolResults(server.requests[2])).toEqual([{ sky: '☀️', degrees: 21 }, 0]);
    });

    test('S412 compacts a conversation that is too long once, and answers it', async () => {
      const tooLong = { status: 400, body: wire.tooLong };
      await using server = await open(
        tooLong,
        { body: wire.text(['They talked about Bern.']) },
        { body: wire.text(['Gern.']) },
        tooLong,
        { body: wire.text(['They talked about Bern.']) },
        tooLong,
      );
      const { model } = server;
      const messages = ['Bern?', 'Zug?', 'Genf?'].flatMap((text) => [
        userMessage(text),
        modelMessage(`${text} ${'Ja. '.repeat(50)}`),
      ]);
      const call = { model, messages, prompt: 'Danke' };
      const compact = { whenTokens: 1_000_000 };
      const response = await app.generate({ ...call, compact });
      expect(response.text).toBe('Gern.');
      expect(server.requests).toHaveLength(3);
      const last = JSON.stringify(server.requests[2]);
      expect(last).toContain('They talked about Bern.');
      expect(last).not.toContain('Bern? Ja.');
      expect(response.messages[0]?.metadata?.summary).toMatchObject({
        text: 'They talked about Bern.',
      });
      const error = await failure(app.generate({ ...call, compact: { ...compact } }));
      expect(error.details).toMatchObject({ contextOverflow: true, httpStatus: 400 });
      expect(server.requests).toHaveLength(6);
    });

    test('lets the model correct wrong arguments', async () => {
      await using server = await open(
        { body: wire.toolCalls([{ id: 'c1', name: 'weather', input: { town: 'Bern' } }]) },
        { body: wire.toolCalls([{ id: 'c2', name: 'weather', input: { city: 'Bern' } }]) },
        { body: wire.text(['ok']) },
      );
      const { model } = server;
      const { text } = await app.generate({ model, prompt: 'Wetter?', tools: [weather] });
      expect(text).toBe('ok');
      expect(JSON.stringify(wire.toolResults(server.requests[1]))).toContain('/city');
      expect(wire.toolResults(server.requests[2])).toHaveLength(2);
    });

    test('gives structured output, asked for by a schema', async () => {
      const answer = { name: 'Zoë', tags: ['日本', 'é'] };
      await using server = await open({ body: wire.text([JSON.stringify(answer)]) });
      const schema = z.object({ name: z.string(), tags: z.array(z.string()) });
      const { output } = await app.generate({
        model: server.model,
        prompt: 'x',
        output: { schema },
      });
      expect(output).toEqual(answer);
      expect(wire.outputSchema(server.requests[0])).toMatchObject({
        type: 'object',
        properties: { name: { type: 'string' }, tags: { type: 'array' } },
        required: ['name', 'tags'],
      });
    });

    test('stops at once when it is aborted, hangs up, and keeps what was heard', async () => {
      await using server = await open({
        body: wire.text(['Es war ', 'einmal'], { cut: true }),
        ending: 'hang',
      });
      const controller = new AbortController();
      const run = app.generateStream({
        model: server.model,
        prompt: 'Erzähl',
        signal: controller.signal,
      });
      let heard = '';
      for await (const chunk of run.stream) {
        heard += chunk.text;
        if (heard.includes('einmal')) break;
      }
      controller.abort();
      expect((await failure(run.response)).status).toBe('CANCELLED');
      await server.hungUp;
      expect(run.messages).toEqual([modelMessage('Es war einmal')]);
    });

    test('goes on from a conversation that was stopped in a tool', async () => {
      await using server = await open(
        { body: wire.toolCalls([{ id: 'c1', name: 'slow', input: {} }]) },
        { body: wire.text(['Weiter.']) },
      );
      const controller = new AbortController();
      const slow = {
        ...weather,
        name: 'slow',
        definition: { ...weather.definition, name: 'slow' },
        run: () => new Promise<never>(() => controller.abort()),
      };
      const { model } = server;
      const run = app.generateStream({
        model,
        prompt: 'x',
        tools: [slow],
        signal: controller.signal,
      });
      await failure(run.response);
      expect(openToolRequests(run.messages)).toEqual([]);
      const next = await app.generate({
        model,
        messages: [userMessage('x'), ...run.messages],
        prompt: 'Und jetzt?',
      });
      expect(next.text).toBe('Weiter.');
      expect(JSON.stringify(wire.toolResults(server.requests[1]))).toContain('Not finished');
    });

    test.each([
      [400, 'INVALID_ARGUMENT', false],
      [401, 'UNAUTHENTICATED', false],
      [429, 'RESOURCE_EXHAUSTED', true],
      [500, 'UNAVAILABLE', true],
    ])('HTTP %i is %s', async (status, expected, retryable) => {
      await using server = await open({
        status,
        headers: { 'retry-after': '3' },
        body: wire.error(status, 'That did not work'),
      });
      const error = await failure(app.generate({ model: server.model, prompt: 'x' }));
      expect(error.status).toBe(expected);
      expect(error.details).toMatchObject({ retryable, httpStatus: status, retryAfterMs: 3000 });
      if (status !== 401) expect(error.message).toContain('That did not work');
    });

    test('is asked again after an error that passes', async () => {
      await using server = await open(
        { status: 503, body: wire.error(503, 'busy') },
        { body: wire.text(['ok']) },
      );
      const response = await app.generate({
        model: server.model,
        prompt: 'x',
        use: [retry({ delay: 1 })],
      });
      expect(response.text).toBe('ok');
    });

    test.each<[string, WireAnswer]>([
      ['ends too early', { body: wire.text(['Es war'], { cut: true }) }],
      [
        'breaks off with the connection',
        { body: wire.text(['Es war'], { cut: true }), ending: 'break' },
      ],
      ['fails in the middle', { body: wire.failing(['Es war']) }],
    ])('an answer that %s is UNAVAILABLE, and what was heard is kept', async (_, answer) => {
      await using server = await open(answer);
      const run = app.generateStream({ model: server.model, prompt: 'x' });
      const error = await failure(run.response);
      expect(error.status).toBe('UNAVAILABLE');
      expect(error.details).toMatchObject({ retryable: true });
      expect(run.messages).toEqual([modelMessage('Es war')]);
    });

    test('an answer that is not what the provider promises is an error', async () => {
      await using server = await open({
        body: `${wire.text(['Es war'], { cut: true })}data: {"oh no\n\n`,
      });
      const error = await failure(app.generate({ model: server.model, prompt: 'x' }));
      expect(['INTERNAL', 'UNAVAILABLE']).toContain(error.status);
    });

    test('a provider that cannot be reached is UNAVAILABLE', async () => {
      const server = await open();
      await server[Symbol.asyncDispose]();
      const error = await failure(app.generate({ model: server.model, prompt: 'x' }));
      expect(error.status).toBe('UNAVAILABLE');
      expect(error.details).toMatchObject({ retryable: true });
    });
  });
}
