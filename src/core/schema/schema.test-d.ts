import { type } from 'arktype';
import * as v from 'valibot';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { Json } from '../json/json.ts';
import { type InferSchema, type InferSchemaInput, parseSync, type Schema } from './schema.ts';

test('the types of a schema are read off it', () => {
  const zod = z.object({ n: z.string().transform(Number) });
  expectTypeOf<InferSchema<typeof zod>>().toEqualTypeOf<{ n: number }>();
  expectTypeOf<InferSchemaInput<typeof zod>>().toEqualTypeOf<{ n: string }>();
  const valibot = v.object({ n: v.pipe(v.string(), v.transform(Number)) });
  expectTypeOf<InferSchema<typeof valibot>>().toEqualTypeOf<{ n: number }>();
  expectTypeOf<InferSchemaInput<typeof valibot>>().toEqualTypeOf<{ n: string }>();
  const arktype = type({ n: 'string.numeric.parse' });
  expectTypeOf<InferSchema<typeof arktype>>().toEqualTypeOf<{ n: number }>();
  expectTypeOf<InferSchemaInput<typeof arktype>>().toEqualTypeOf<{ n: string }>();
  const plain = { type: 'object', properties: { n: { type: 'number' } } } as const;
  expectTypeOf<InferSchema<typeof plain>>().toEqualTypeOf<Json>();
  expectTypeOf(parseSync(zod, {}, 'it')).toEqualTypeOf<{ n: number }>();
});

test('all of them are schemas', () => {
  expectTypeOf(z.string()).toExtend<Schema<string>>();
  expectTypeOf(v.string()).toExtend<Schema<string>>();
  expectTypeOf(type('string')).toExtend<Schema<string>>();
  expectTypeOf({ type: 'string' }).toExtend<Schema>();
  expectTypeOf<string>().not.toExtend<Schema>();
});
