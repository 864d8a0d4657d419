import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Action } from '../../core/action.ts';
import type { Json } from '../../core/json/json.ts';
import { createRegistry } from '../../core/registry.ts';
import type { Schema } from '../../core/schema/schema.ts';
import { systemClock } from '../../core/time.ts';
import { textOf } from '../../protocol/messages.ts';
import { type ScriptStep, scriptedModel } from '../../testing/scripted-model.ts';
import { createGenerator } from '../generator.ts';
import { findJson, parsePartialJson } from './find-json.ts';

function setUp(script: readonly ScriptStep[]) {
  const model = scriptedModel(script);
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'id',
    model,
  });
  return { app, model };
}

const person = z.object({ name: z.string(), age: z.number() });
const ann = '{"name":"Ann","age":30}';

describe('structured output', () => {
  test.each([
    ['plain', ann],
    ['in a code fence', `\`\`\`json\n${ann}\n\`\`\``],
    ['among words', `Here it is [1]: ${ann} - good luck {really}`],
  ])('is read when it comes %s', async (_, text) => {
    const { app } = setUp([text]);
    const { output } = await app.generate({ prompt: 'x', output: { schema: person } });
    expect(output).toEqual({ name: 'Ann', age: 30 });
  });

  test('has the values that the schema makes of it', async () => {
    const { app } = setUp(['{"n":"5"}']);
    const schema = z.object({ n: z.coerce.number(), unit: z.string().default('kg') });
    const { output } = await app.generate({ prompt: 'x', output: { schema } });
    expect(output).toEqual({ n: 5, unit: 'kg' });
  });

  test.each([
    ['array', z.array(person), `[${ann},${ann}]`],
    ['array in the object that providers want', z.array(person), `{"items":[${ann},${ann}]}`],
    ['jsonl', z.array(person), `${ann}\n\n${ann}\n`],
    ['jsonl in a code fence', z.array(person), `\`\`\`jsonl\n${ann}\n${ann}\n\`\`\``],
  ])('as %s is an array', async (name, schema, text) => {
    const { app } = setUp([text]);
    const format = name.startsWith('jsonl') ? 'jsonl' : 'array';
    const { output } = await app.generate({ prompt: 'x', output: { schema, format } });
    expect(output).toEqual([
      { name: 'Ann', age: 30 },
      { name: 'Ann', age: 30 },
    ]);
  });

  test.each([['red'], ['"red"'], [' red.\n']])('as enum takes %j', async (text) => {
    const { app } = setUp([text]);
    const { output } = await app.generate({
      prompt: 'x',
      output: { schema: z.enum(['red', 'green']) },
    });
    expect(output).toBe('red');
  });

  test('without a schema is whatever JSON there is', async () => {
    const { app } = setUp(['{"a":[1]}']);
    const { output } = await app.generate({ prompt: 'x', output: { format: 'json' } });
    expect(output).toEqual({ a: [1] });
  });

  test('takes a plain JSON Schema', async () => {
    const { app } = setUp(['{"a":"x"}', '{"a":"x"}']);
    const schema = (type: string) => ({
      type: 'object',
      properties: { a: { type } },
      required: ['a'],
    });
    expect(
      (await app.generate({ prompt: 'x', output: { schema: schema('string') } })).output,
    ).toEqual({ a: 'x' });
    await expect(
      app.generate({ prompt: 'x', output: { schema: schema('number') } }),
    ).rejects.toThrow(/schema/);
  });

  test.each([
    ['no JSON', 'I would rather not.', {}],
    ['JSON that breaks off', '{"name":"An', {}],
    ['JSON that does not fit', '{"name":"Ann","age":"old"}', {}],
    [
      'a line that is not JSON',
      `${ann}\noops`,
      { format: 'jsonl' as const, schema: z.array(person) },
    ],
    ['none of the values', 'blue', { schema: z.enum(['red']) }],
  ])(
    'that is %s is UNAVAILABLE, shows the answer and says what to do',
    async (_, text, options) => {
      const { app } = setUp([text]);
      await expect(
        app.generate({ prompt: 'x', output: { schema: person as Schema, ...options } }),
      ).rejects.toMatchObject({
        status: 'UNAVAILABLE',
        message: expect.stringContaining(`${JSON.stringify(text)}. Send the message again`),
        details: { retryable: true },
      });
    },
  );

  test('that does not fit says once what does not', async () => {
    const { app } = setUp(['{"name":"Ann","age":"old"}']);
    const error = await app
      .generate({ prompt: 'x', output: { schema: person } })
      .catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/its answer does not fit the schema \(.*age/);
    expect(String(error).match(/does not fit/g)).toHaveLength(1);
  });

  test('is not there when the answer was cut off or blocked, and that is no error', async () => {
    const { app } = setUp([
      { text: '{"name":', finishReason: 'length' },
      { text: '', finishReason: 'blocked' },
    ]);
    for (const finishReason of ['length', 'blocked']) {
      const response = await app.generate({ prompt: 'x', output: { schema: person } });
      expect(response).toMatchObject({ finishReason, output: undefined });
    }
  });

  test('is explained in words to a model that does not constrain itself, behind the system message', async () => {
    const { app, model } = setUp([ann, ann, ann]);
    await app.generate({ system: 'S', prompt: 'x', output: { schema: person } });
    const [first] = model.requests[0]?.messages ?? [];
    expect(first?.role).toBe('system');
    expect(first && textOf(first)).toMatch(/^S\n\nAnswer with JSON only.*"name"/s);
    expect(model.requests[0]?.output).toMatchObject({ format: 'json', schema: { type: 'object' } });

    await app.generate({ prompt: 'x', output: { schema: person, instructions: false } });
    expect(model.requests[1]?.messages).toHaveLength(1);

    await app.generate({ prompt: 'x', output: { schema: person, instructions: 'Say it in JSON' } });
    const [own] = model.requests[2]?.messages ?? [];
    expect(own && textOf(own)).toBe('Say it in JSON');
  });

  test('is not explained to one that does', async () => {
    const { app } = setUp([]);
    let seen = 0;
    app.defineModel({ name: 'strict', constrainsOutput: true }, async ({ messages }) => {
      seen = messages.length;
      return { message: { role: 'model', content: [{ text: ann }] }, finishReason: 'stop' };
    });
    await app.generate({ model: 'strict', prompt: 'x', output: { schema: person } });
    expect(seen).toBe(1);
  });

  test('grows while it streams', async () => {
    const { app } = setUp([{ chunks: ['{"na', 'me":"A', 'nn","a', 'ge":3', '0}'] }]);
    const seen: unknown[] = [];
    for await (const chunk of app.generateStream({ prompt: 'x', output: { schema: person } })
      .stream) {
      seen.push(chunk.output);
    }
    expect(seen).toEqual([
      {},
      { name: 'A' },
      { name: 'Ann' },
      { name: 'Ann' },
      { name: 'Ann', age: 30 },
    ]);
  });

  test.each([
    ['array', ['[{"name":"A', '","age":1},', '{"name":"B"', ',"age":2}]']],
    ['jsonl', ['{"name":"A', '","age":1}\n', '{"name":"B"', ',"age":2}\n']],
  ] as const)('as %s shows elements when they are complete', async (format, chunks) => {
    const { app } = setUp([{ chunks }]);
    const seen: unknown[] = [];
    const output = { schema: z.array(person), format };
    for await (const chunk of app.generateStream({ prompt: 'x', output }).stream)
      seen.push(chunk.output);
    const [a, b] = [
      { name: 'A', age: 1 },
      { name: 'B', age: 2 },
    ];
    expect(seen).toEqual(
      [[], [a], [a], [a, b]].map((items, at) => (format === 'array' && at === 1 ? [] : items)),
    );
  });
});

describe('JSON that breaks off', () => {
  // JSON texts have no -0.
  const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as Json);

  test('is parsed as far as possible: every prefix gives a part of the whole', () => {
    fc.assert(
      fc.property(json, fc.boolean(), fc.nat(), (value, pretty, cut) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        const prefix = text.slice(0, cut % (text.length + 1));
        const partial = parsePartialJson(prefix);
        if (partial) expect(isPartOf(partial.value, value)).toBe(true);
        if (prefix.length < text.length && /^[[{"]/.test(text)) {
          expect(partial?.complete ?? false).toBe(false);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('is itself when it does not', () => {
    fc.assert(
      fc.property(json, fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        if (typeof value === 'object' || typeof value === 'string') {
          expect(parsePartialJson(text)).toEqual({ value, complete: true, end: text.length });
        }
        expect(findJson(text)).toEqual(value);
      }),
      { numRuns: 500 },
    );
  });

  test('is found among words', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(fc.jsonValue(), { minLength: 1 }),
          fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }),
        ),
        fc.stringMatching(/^[a-z :.\n]*$/),
        (value, words) => {
          const text = JSON.stringify(value);
          expect(findJson(`${words}${text}${words}`)).toEqual(JSON.parse(text));
        },
      ),
    );
  });

  test.each(['{"a":1,}', '[1,]', '{a:1}', '{"a" 1}', '[1 2]', 'nope', '{"a":tru}', '["\\x"]'])(
    '%j is not JSON',
    (text) => {
      expect(parsePartialJson(text)).toBeUndefined();
    },
  );

  test('does not overflow the stack', () => {
    expect(parsePartialJson('['.repeat(100_000))).toBeUndefined();
  });

  test('leaves out half an escape and half a character', () => {
    expect(parsePartialJson('"a\\u00e')?.value).toBe('a');
    expect(parsePartialJson('"a\\')?.value).toBe('a');
    expect(parsePartialJson('"a\\ud83d')?.value).toBe('a');
    expect(parsePartialJson('"a\\ud83d\\ude00')?.value).toBe('a😀');
    expect(parsePartialJson('"a\\n')?.value).toBe('a\n');
  });
});

/** Whether one value is what can be said of another so far. */
function isPartOf(part: Json, whole: Json): boolean {
  if (typeof part === 'string') return typeof whole === 'string' && whole.startsWith(part);
  if (Array.isArray(part)) {
    return Array.isArray(whole) && part.every((item, at) => isPartOf(item, whole[at] as Json));
  }
  if (typeof part !== 'object' || part === null) return part === whole;
  return Object.entries(part).every(
    ([key, item]) =>
      Object.hasOwn(whole as object, key) &&
      isPartOf(item as Json, (whole as Record<string, Json>)[key] as Json),
  );
}
