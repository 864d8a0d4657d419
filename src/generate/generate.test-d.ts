import { anthropic } from '@ai-sdk/anthropic';
import { google } from '@ai-sdk/google';
import { openai } from '@ai-sdk/openai';
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider';
import { type } from 'arktype';
import * as v from 'valibot';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { ActionContext } from '../core/action.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { createGenerator, type Generator, type GeneratorOptions } from './generator.ts';
import type { ModelRef } from './model.ts';
import { interrupt, type Tool, tool } from './tool/tool.ts';

declare const app: Generator;
declare const options: GeneratorOptions;

test('the models of all providers and versions can be used as they are', () => {
  expectTypeOf(openai('gpt-5')).toExtend<ModelRef>();
  expectTypeOf(anthropic('claude')).toExtend<ModelRef>();
  expectTypeOf(google('gemini')).toExtend<ModelRef>();
  expectTypeOf<LanguageModelV2>().toExtend<ModelRef>();
  expectTypeOf<LanguageModelV3>().toExtend<ModelRef>();
  expectTypeOf<LanguageModelV4>().toExtend<ModelRef>();
});

test('the input of a tool comes from its schema, whatever library made it', () => {
  tool({ name: 'a', description: '', input: z.object({ n: z.number().default(1) }) }, (input) =>
    expectTypeOf(input).toEqualTypeOf<{ n: number }>(),
  );
  tool({ name: 'b', description: '', input: v.object({ n: v.string() }) }, (input) =>
    expectTypeOf(input).toEqualTypeOf<{ n: string }>(),
  );
  tool({ name: 'c', description: '', input: type({ n: 'boolean' }) }, (input) =>
    expectTypeOf(input).toEqualTypeOf<{ n: boolean }>(),
  );
  tool({ name: 'd', description: '', input: { type: 'object' } }, (input) =>
    expectTypeOf(input).toEqualTypeOf<Json>(),
  );
  tool({ name: 'e', description: '' }, (input) => expectTypeOf(input).toEqualTypeOf<JsonObject>());
});

test('the result of a tool comes from its function, or its output schema', () => {
  const plain = tool({ name: 'a', description: '' }, async () => ({ n: 1 }));
  expectTypeOf(plain).toEqualTypeOf<Tool<JsonObject, { n: number }>>();
  const checked = tool(
    { name: 'a', description: '', output: z.object({ n: z.number().default(1) }) },
    () => ({}),
  );
  expectTypeOf(checked.run).returns.resolves.toEqualTypeOf<{ n: number }>();
  // @ts-expect-error the function returns what its schema does not take
  tool({ name: 'a', description: '', output: z.object({ n: z.number() }) }, () => ({ n: 'one' }));
});

test('an interrupt has the types of its schemas', () => {
  const ask = interrupt({
    name: 'ask',
    description: '',
    input: z.object({ question: z.string() }),
    output: z.object({ answer: z.string() }),
    request: ({ question }) => {
      expectTypeOf(question).toEqualTypeOf<string>();
      return question;
    },
  });
  expectTypeOf(ask).toEqualTypeOf<Tool<{ question: string }, { answer: string }>>();
});

test('what an app adds to the context of its tools is typed by what it returns', () => {
  const withSession = createGenerator({ ...options, toolExtras: () => ({ session: { id: 's' } }) });
  withSession.defineTool({ name: 'a', description: '' }, (_, context) => {
    expectTypeOf(context.session).toEqualTypeOf<{ id: string }>();
    expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(context.resumed).toEqualTypeOf<Json | undefined>();
    expectTypeOf(context.idempotencyKey).toEqualTypeOf<string>();
    expectTypeOf(context.context).toEqualTypeOf<ActionContext>();
    expectTypeOf(context.interrupt).returns.toBeNever();
  });
});

test('the output of generate comes from its schema', async () => {
  const schema = z.object({ name: z.string(), tags: z.array(z.string()) });
  const { output } = await app.generate({ prompt: 'x', output: { schema } });
  expectTypeOf(output).toEqualTypeOf<{ name: string; tags: string[] } | undefined>();
  const { output: colour } = await app.generate({
    prompt: 'x',
    output: { schema: z.enum(['red', 'green']) },
  });
  expectTypeOf(colour).toEqualTypeOf<'red' | 'green' | undefined>();
  const { output: any } = await app.generate({ prompt: 'x', output: { format: 'json' } });
  expectTypeOf(any).toEqualTypeOf<Json | undefined>();
  const { output: text } = await app.generate('x');
  expectTypeOf(text).toEqualTypeOf<Json | undefined>();
});

test('while it streams, everything of the output may still be missing', async () => {
  const schema = z.object({ name: z.string(), tags: z.array(z.object({ n: z.number() })) });
  const { stream, response } = app.generateStream({ prompt: 'x', output: { schema } });
  for await (const chunk of stream) {
    expectTypeOf(chunk).toExtend<ModelChunk>();
    expectTypeOf(chunk.output).toEqualTypeOf<
      { readonly name?: string; readonly tags?: readonly { readonly n?: number }[] } | undefined
    >();
  }
  expectTypeOf((await response).output).toEqualTypeOf<z.infer<typeof schema> | undefined>();
});

test('the input and output of a prompt come from its schemas', async () => {
  const greet = app.definePrompt({
    name: 'greet',
    input: z.object({ name: z.string(), tone: z.string().default('kind') }),
    output: { schema: z.object({ greeting: z.string() }) },
    system: ({ input }) => {
      expectTypeOf(input).toEqualTypeOf<{ name: string; tone: string }>();
      return input.tone;
    },
  });
  const { output } = await greet.generate({ name: 'Ann' });
  expectTypeOf(output).toEqualTypeOf<{ greeting: string } | undefined>();
  // @ts-expect-error the input is missing
  greet.generate();
  // @ts-expect-error the input is wrong
  greet.render({ name: 1 });

  const plain = app.definePrompt({ name: 'plain', prompt: 'x' });
  expectTypeOf(plain.generate).toBeCallableWith();
  expectTypeOf(plain.generate).toBeCallableWith(undefined, { model: 'other' });
});

test('tools and prompts of any type can be put in one list', () => {
  const a = app.defineTool(
    { name: 'a', description: '', input: z.object({ n: z.number() }) },
    () => 1,
  );
  const b = app.defineTool({ name: 'b', description: '' }, () => 'x');
  expectTypeOf(app.generate).toBeCallableWith({ prompt: 'x', tools: [a, b, 'c'] });
});
