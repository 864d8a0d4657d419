import { type } from 'arktype';
import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { WaymarkError } from '../error.ts';
import { isDeepFrozen, type Json } from '../json/json.ts';
import { parse, parseSync, type Schema, toJsonSchema } from './schema.ts';

const weather: { readonly [library: string]: Schema } = {
  zod: z.object({ city: z.string(), days: z.array(z.object({ 'max/min': z.number() })) }),
  valibot: v.object({ city: v.string(), days: v.array(v.object({ 'max/min': v.number() })) }),
  arktype: type({ city: 'string', days: type({ 'max/min': 'number' }).array() }),
  'JSON Schema': {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: {
        type: 'array',
        items: {
          type: 'object',
          properties: { 'max/min': { type: 'number' } },
          required: ['max/min'],
        },
      },
    },
    required: ['city', 'days'],
  },
};

describe.each(Object.entries(weather))('a schema of %s', (_, schema) => {
  test('lets through what fits, without waiting', () => {
    const value = { city: 'Bern', days: [{ 'max/min': 3 }] };
    expect(parseSync(schema, value, 'The input')).toEqual(value);
    expect(parse(schema, value, 'The input')).toEqual(value);
  });

  test('says what is wrong where', () => {
    const error = refusal(() =>
      parse(schema, { city: 1, days: [{ 'max/min': 3 }, {}] }, 'The input'),
    );
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect(error.message).toMatch(/^The input does not fit its schema\. .*\/city: .*\/days\/1/);
    const { issues } = error.details as { issues: { path: string; message: string }[] };
    const paths = issues.map(({ path }) => path);
    expect(paths).toContain('/city');
    expect(paths.some((path) => path === '/days/1/max~1min' || path === '/days/1')).toBe(true);
    expect(issues.every(({ message }) => message.length > 0)).toBe(true);
  });

  test.each([undefined, null, 'text', []])('refuses %j as a whole', (value) => {
    const error = refusal(() => parse(schema, value, 'The input'));
    const { issues } = error.details as { issues: { path: string }[] };
    if (!Array.isArray(value)) expect(issues.map(({ path }) => path)).toEqual(['']);
  });

  test('is described by a JSON Schema, made once and frozen', () => {
    const described = toJsonSchema(schema);
    expect(described).toMatchObject({
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'array', items: { required: ['max/min'] } },
      },
    });
    expect(isDeepFrozen(described)).toBe(true);
    expect(toJsonSchema(schema)).toBe(described);
    expect(parseSync(described, { city: 'Bern', days: [] }, 'it')).toEqual({
      city: 'Bern',
      days: [],
    });
  });
});

describe('what JSON Schema cannot say', () => {
  class Secret {}
  test.each<[string, Schema]>([
    ['a zod date', z.object({ at: z.date() })],
    ['a zod map', z.map(z.string(), z.string())],
    ['a zod bigint', z.bigint()],
    ['a valibot date', v.object({ at: v.date() })],
    ['a valibot instance', v.instance(Secret)],
    ['an arktype date', type({ at: 'Date' })],
    ['an arktype bigint', type({ n: 'bigint' })],
    ['an arktype instance', type({ secret: type.instanceOf(Secret) })],
  ])('%s is refused, with what to do', (_, schema) => {
    const error = refusal(() => toJsonSchema(schema));
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(error.message).toMatch(
      /cannot be turned into JSON Schema: .*[^.]\. Use types that JSON has, or pass a JSON Schema\.$/s,
    );
  });

  test('the output of a transform is refused where it cannot be known, its input is not', () => {
    for (const schema of [z.string().transform(Number), v.pipe(v.string(), v.transform(Number))]) {
      expect(toJsonSchema(schema, 'input')).toMatchObject({ type: 'string' });
      expect(() => toJsonSchema(schema, 'output')).toThrow('cannot be turned into JSON Schema');
    }
  });

  test('a library that offers no JSON Schema is refused by its name', () => {
    const foreign: Schema = {
      '~standard': { version: 1, vendor: 'homemade', validate: (value: unknown) => ({ value }) },
    };
    expect(parseSync(foreign, 1, 'it')).toBe(1);
    expect(() => toJsonSchema(foreign)).toThrow(
      'Schemas of homemade cannot be turned into JSON Schema',
    );
  });

  test('valibot needs an extra package, and the error names it', () => {
    const schema = v.object({ a: v.string() });
    vi.stubGlobal('process', undefined);
    try {
      expect(() => toJsonSchema(schema)).toThrow('@valibot/to-json-schema: install it');
    } finally {
      vi.unstubAllGlobals();
    }
    expect(toJsonSchema(schema)).toMatchObject({ required: ['a'] });
  });

  test.each([null, 'string', 5, () => {}])('%o is no schema at all', (value) => {
    for (const use of [() => parse(value as never, 1, 'it'), () => toJsonSchema(value as never)]) {
      expect(refusal(use).message).toContain('must be a Standard Schema');
    }
  });
});

test('input and output may differ', () => {
  const schema = z.object({
    limit: z.number().default(10),
    page: z.string().transform(Number).pipe(z.number()),
  });
  expect(toJsonSchema(schema, 'input')).toMatchObject({
    properties: { page: { type: 'string' } },
    required: ['page'],
  });
  expect(toJsonSchema(schema, 'output')).toMatchObject({
    properties: { page: { type: 'number' } },
    required: ['limit', 'page'],
  });
  expect(parseSync(schema, { page: '3' }, 'it')).toEqual({ limit: 10, page: 3 });
});

describe('an asynchronous schema', () => {
  const free = z.string().refine(async (name) => name !== 'taken', 'This name is taken.');

  test('is waited for', async () => {
    expect(await parse(free, 'new', 'The name')).toBe('new');
    await expect(parse(free, 'taken', 'The name')).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('This name is taken.'),
    });
  });

  test('is refused in synchronous validation', () => {
    expect(() => parseSync(free, 'taken', 'The name')).toThrow(
      'The schema of The name is asynchronous',
    );
  });
});

describe('a plain JSON Schema', () => {
  test.each<[string, object, string]>([
    [
      'an unknown type',
      { properties: { a: { type: 'strin' } } },
      'at /properties/a/type: there is no type "strin"',
    ],
    [
      'a bad pattern',
      { items: { pattern: '(' } },
      'at /items/pattern: "(" is not a regular expression',
    ],
    ['a bad pattern of names', { patternProperties: { '[': {} } }, '/patternProperties'],
    [
      'a reference to nowhere',
      { properties: { 'a/b': { $ref: '#/definitions/x' } } },
      'at /properties/a~1b/$ref: it leads to "#/definitions/x"',
    ],
    [
      'a reference to elsewhere',
      { $ref: 'https://example.com/schema.json' },
      'which is not in this schema',
    ],
    [
      'a single required name',
      { required: 'a' },
      'at /required: it must be a list of property names',
    ],
    ['an enum of one', { enum: 'a' }, 'at /enum'],
    ['properties in a list', { properties: [] }, 'at /properties: it must be an object of schemas'],
    [
      'a name for a schema',
      { properties: { a: 'string' } },
      'at /properties/a: a schema must be an object',
    ],
    [
      'one schema where a list is meant',
      { anyOf: { type: 'string' } },
      'at /anyOf: it must be a list of schemas',
    ],
    ['something that is not JSON', { default: new Date() }, 'at /default is not JSON'],
  ])('with %s is refused at definition', (_, schema, message) => {
    const error = refusal(() => toJsonSchema(schema as Schema));
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(error.message).toContain(message);
    expect(() => parse(schema as Schema, {}, 'it')).toThrow(message);
  });

  test('may refer to itself', () => {
    const tree = {
      type: 'object',
      properties: { kids: { type: 'array', items: { $ref: '#' } } },
      additionalProperties: false,
    };
    expect(parseSync(tree, { kids: [{ kids: [] }] }, 'it')).toEqual({ kids: [{ kids: [] }] });
    const error = refusal(() => parse(tree, { kids: [{ kids: [{ pets: 1 }] }] }, 'it'));
    expect(error.details).toEqual({
      issues: [{ path: '/kids/0/kids/0/pets', message: 'Nothing is allowed here.' }],
    });
  });

  test('a reference that only leads back to itself is an error, not a crash', () => {
    expect(refusal(() => parse({ $ref: '#' }, 1, 'The value')).message).toContain(
      'cannot be applied',
    );
  });

  test('is not written into, and may be frozen', () => {
    const schema = Object.freeze({
      definitions: Object.freeze({ a: Object.freeze({ type: 'string' }) }),
      $ref: '#/definitions/a',
    });
    expect(parseSync(schema, 'x', 'it')).toBe('x');
    expect(Reflect.ownKeys(schema)).toEqual(['definitions', '$ref']);
  });

  test('treats undefined properties as not there, and refuses values that are not JSON', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' } },
      additionalProperties: false,
    };
    expect(parseSync(schema, { a: 'x', b: undefined }, 'it')).toEqual({ a: 'x', b: undefined });
    expect(refusal(() => parse(schema, { a: () => {} }, 'The input')).message).toContain(
      'The input at /a is not JSON',
    );
  });

  test('names places with any characters in them', () => {
    const names = ['é', '#', '%23', '~', '/', ' ', '"', '日本'];
    const schema = { additionalProperties: { type: 'number' } };
    for (const name of names) {
      const { details } = refusal(() => parse(schema, { [name]: 'x' }, 'it'));
      const path = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      expect(details).toMatchObject({ issues: [{ path }] });
    }
  });

  test.each([
    [
      'http://json-schema.org/draft-07/schema#',
      { items: [{ type: 'string' }, { type: 'number' }] },
      ['a', 'b'],
    ],
    [
      'https://json-schema.org/draft/2020-12/schema',
      { prefixItems: [{ type: 'string' }, { type: 'number' }] },
      ['a', 'b'],
    ],
    ['http://json-schema.org/draft-04/schema#', { maximum: 3, exclusiveMaximum: true }, 3],
  ])('is read as its $schema says: %s', ($schema, schema, value) => {
    expect(() => parse({ $schema, ...schema }, value, 'it')).toThrow('does not fit');
  });

  test('many issues are cut in the message, not in the details', () => {
    const { message, details } = refusal(() =>
      parse({ items: { type: 'string' } }, [1, 2, 3, 4, 5, 6, 7], 'it'),
    );
    expect(message).toMatch(/\(and 2 more\)$/);
    expect((details as { issues: Json[] }).issues).toHaveLength(7);
  });
});

type Shape =
  | { readonly kind: 'string' | 'number' | 'boolean' | 'null' }
  | { readonly kind: 'list'; readonly item: Shape }
  | {
      readonly kind: 'object';
      readonly fields: {
        readonly [name: string]: { readonly shape: Shape; readonly optional: boolean };
      };
    };

const { shape: anyShape } = fc.letrec<{ shape: Shape; scalar: Shape }>((tie) => ({
  scalar: fc.record({ kind: fc.constantFrom('string', 'number', 'boolean', 'null') }),
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('scalar'),
    fc.record({ kind: fc.constant('list'), item: tie('shape') }),
    fc.record({
      kind: fc.constant('object'),
      fields: fc.dictionary(
        fc.constantFrom('a', 'b', 'c/d'),
        fc.record({ shape: tie('shape'), optional: fc.boolean() }),
      ),
    }),
  ),
}));

test('the same shape means the same in every library, and so does its JSON Schema', () => {
  // Arrays are left out: arktype and JavaScript, unlike JSON Schema, take them for objects as well.
  const wrong = fc.constantFrom<Json | undefined>('x', 1, false, null, undefined);
  fc.assert(
    fc.property(anyShape, fc.array(fc.tuple(fc.nat(), wrong), { maxLength: 6 }), (shape, edits) => {
      const schemas = [toZod(shape), toValibot(shape), toArktype(shape), toPlain(shape)];
      const all = [...schemas, ...schemas.map((schema) => toJsonSchema(schema))];
      expect(all.map((schema) => fits(schema, example(shape)))).not.toContain(false);
      for (const [place, value] of edits) {
        const edited = withEdit(example(shape), place, value);
        const verdicts = all.map((schema) => fits(schema, edited));
        expect(new Set(verdicts).size).toBe(1);
      }
    }),
    { numRuns: 100 },
  );
});

function withEdit(value: Json, place: number, edit: Json | undefined): Json {
  const children = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  const key = children[place % (children.length + 1)];
  if (key === undefined) return edit ?? null;
  const copy: Record<string, Json> | Json[] = JSON.parse(JSON.stringify(value));
  const child = Reflect.get(copy, key);
  if (edit === undefined && !Array.isArray(copy)) Reflect.deleteProperty(copy, key);
  else Reflect.set(copy, key, withEdit(child, Math.floor(place / 3), edit));
  return copy;
}

function fits(schema: Schema, value: Json): boolean {
  try {
    parseSync(schema, value, 'it');
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT' });
    return false;
  }
}

function example(shape: Shape): Json {
  switch (shape.kind) {
    case 'string':
      return 'x';
    case 'number':
      return 1.5;
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'list':
      return [example(shape.item), example(shape.item)];
    case 'object':
      return mapFields(shape.fields, ({ shape: field }) => example(field));
  }
}

function toZod(shape: Shape): z.ZodType {
  switch (shape.kind) {
    case 'list':
      return z.array(toZod(shape.item));
    case 'object':
      return z.looseObject(
        mapFields(shape.fields, ({ shape: field, optional }) =>
          optional ? toZod(field).optional() : toZod(field),
        ),
      );
    default:
      return z[shape.kind]();
  }
}

function toValibot(shape: Shape): v.GenericSchema {
  switch (shape.kind) {
    case 'list':
      return v.array(toValibot(shape.item));
    case 'object':
      return v.looseObject(
        mapFields(shape.fields, ({ shape: field, optional }) =>
          optional ? v.optional(toValibot(field)) : toValibot(field),
        ),
      );
    case 'null':
      return v.null();
    case 'string':
      return v.string();
    case 'number':
      return v.number();
    case 'boolean':
      return v.boolean();
  }
}

function toArktype(shape: Shape): Schema {
  const definition = (node: Shape): unknown => {
    if (node.kind === 'list') return [definition(node.item), '[]'];
    if (node.kind !== 'object') return node.kind;
    const entries = Object.entries(node.fields);
    return Object.fromEntries(
      entries.map(([name, { shape: field, optional }]) => [
        optional ? `${name}?` : name,
        definition(field),
      ]),
    );
  };
  return type.raw(definition(shape)) as Schema;
}

function toPlain(shape: Shape): Schema {
  switch (shape.kind) {
    case 'list':
      return { type: 'array', items: toPlain(shape.item) };
    case 'object':
      return {
        type: 'object',
        properties: mapFields(shape.fields, ({ shape: field }) => toPlain(field)),
        required: Object.keys(shape.fields).filter((name) => !shape.fields[name]?.optional),
      };
    default:
      return { type: shape.kind };
  }
}

function mapFields<In, Out>(
  fields: { readonly [name: string]: In },
  fn: (field: In) => Out,
): Record<string, Out> {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fn(field)]));
}

function refusal(fn: () => unknown): WaymarkError {
  try {
    fn();
  } catch (error) {
    if (error instanceof WaymarkError) return error;
    throw error;
  }
  throw new Error('It was not refused.');
}

describe('a large value full of faults', () => {
  const schemas: { readonly [library: string]: Schema } = {
    zod: z.object({ items: z.array(z.object({ a: z.string() })) }),
    valibot: v.object({ items: v.array(v.object({ a: v.string() })) }),
    arktype: type({ items: type({ a: 'string' }).array() }),
    'JSON Schema': {
      type: 'object',
      properties: { items: { type: 'array', items: { type: 'object', required: ['a'] } } },
    },
  };

  test.each(Object.entries(schemas))('gives a short error (%s)', (_, schema) => {
    const value = { items: Array.from({ length: 5000 }, () => ({ b: 'x'.repeat(10) })) };
    try {
      parseSync(schema, value, 'it');
      expect.unreachable();
    } catch (error) {
      const { message, details } = error as WaymarkError;
      expect(message).toContain('/items/0');
      expect(message.length).toBeLessThan(1000);
      expect((details as { issues: Json[] }).issues.length).toBeLessThanOrEqual(20);
    }
  });

  test.each(['valibot', 'JSON Schema'])('is read up to the first one (%s)', (library) => {
    const schema = schemas[library] as Schema;
    const issuesOf = (count: number): number => {
      try {
        parseSync(schema, { items: Array.from({ length: count }, () => ({})) }, 'it');
      } catch (error) {
        return ((error as WaymarkError).details as { issues: Json[] }).issues.length;
      }
      return 0;
    };
    expect(issuesOf(10)).toBe(10);
    expect(issuesOf(5000)).toBe(1);
  });

  test('with a key of any length gives a short error', () => {
    const schema = z.object({ items: z.record(z.string(), z.number()) });
    try {
      parseSync(schema, { items: { ['k'.repeat(1_000_000)]: 'x' } }, 'it');
      expect.unreachable();
    } catch (error) {
      expect(JSON.stringify((error as WaymarkError).toJSON()).length).toBeLessThan(3000);
    }
  });
});
