import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hostileSchemas } from '../../../test/support/hostile-schemas.ts';
import { isWaymarkError } from '../error.ts';
import type { Json, JsonObject } from '../json/json.ts';
import { jsonSchemaIssues } from './json-schema.ts';
import { parse, toJsonSchema } from './schema.ts';
import { untrustedSchema } from './untrusted-schema.ts';

/** How a check ends: `fits`, or the status of its error. */
async function outcome(schema: JsonObject, value: Json): Promise<string> {
  try {
    await parse(untrustedSchema(schema), value, 'The value');
    return 'fits';
  } catch (error) {
    return isWaymarkError(error) ? error.status : String(error);
  }
}

test('there are forty hostile schemas', () => {
  expect(hostileSchemas).toHaveLength(40);
});

test.each(hostileSchemas)('S660 a check ends: $name', async ({ schema, value }) => {
  expect(['fits', 'INVALID_ARGUMENT', 'RESOURCE_EXHAUSTED']).toContain(
    await outcome(schema, value),
  );
});

test('S660 a value that needs too many steps is refused, and the error says what to do', async () => {
  const schema = { anyOf: [{ $ref: '#' }, { $ref: '#' }] };
  await expect(parse(untrustedSchema(schema), 1, 'The value')).rejects.toThrow(
    'Checking the value against its JSON Schema takes too many steps. Use a simpler schema',
  );
});

test.each<[string, JsonObject, string]>([
  ['too long', { description: 'x'.repeat(300_000) }, '300018 characters, of at most 262144'],
  [
    'too deep',
    JSON.parse(`${'{"not":'.repeat(200)}{}${'}'.repeat(200)}`),
    'nested more than 128 levels deep',
  ],
  ['not a schema', { properties: { a: 7 } }, 'at /properties/a: a schema must be an object'],
  ['a reference to nothing', { $ref: '#/$defs/a' }, '"#/$defs/a", which is not in this schema'],
  ['a reference to elsewhere', { $ref: 'https://example.com/a' }, 'which is not in this schema'],
  ['a reference to a prototype', { $ref: '#/constructor' }, 'which is not in this schema'],
])('S661 a schema that is %s is refused', (_, schema, message) => {
  expect(() => untrustedSchema(schema)).toThrow(message);
});

test('S660 a large result of an ordinary schema is checked', async () => {
  const item = {
    type: 'object',
    properties: { id: { type: 'integer' }, name: { type: 'string', maxLength: 9 } },
    required: ['id', 'name'],
    additionalProperties: false,
  };
  const items = Array.from({ length: 20_000 }, (_, id) => ({ id, name: 'Ann' }));
  expect(await outcome({ type: 'array', items: item }, items)).toBe('fits');
  const wrong = [...items, { id: 1.5, name: 'Ann' }];
  expect(await outcome({ type: 'array', items: item }, wrong)).toBe('INVALID_ARGUMENT');
});

test.each<[string, JsonObject, Json, boolean]>([
  ['pattern', { pattern: '^b' }, 'a', true],
  ['format', { format: 'email' }, 'a', true],
  ['not', { not: { pattern: '^a' } }, 'a', true],
  ['not, in spite of another type', { not: { type: 'number', pattern: '^a' } }, 'a', true],
  ['not, where the type decides', { not: { type: 'string' } }, 'a', false],
  ['oneOf', { oneOf: [{ pattern: '^a' }, { pattern: '^b' }] }, 'a', true],
  ['oneOf of other types', { oneOf: [{ type: 'number' }, { type: 'null' }] }, 'a', false],
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ['if', { if: { pattern: '^a' }, then: false, else: false }, 'a', true],
  ['contains', { contains: { pattern: '^a' }, maxContains: 1 }, ['a', 'b'], true],
  [
    'patternProperties',
    { patternProperties: { a: {} }, additionalProperties: false },
    { b: 1 },
    true,
  ],
])('S662 patterns and formats are not evaluated: %s', async (_, schema, value, fits) => {
  expect(await outcome(schema, value)).toBe(fits ? 'fits' : 'INVALID_ARGUMENT');
});

test('the error names each issue and its place, and the JSON Schema is that of the caller', async () => {
  const schema = {
    type: 'object',
    properties: { size: { type: 'integer', minimum: 3 }, kind: { enum: ['a', 'b'] } },
    required: ['name'],
  };
  const checked = parse(untrustedSchema(schema), { size: 'big', kind: 'c' }, 'The input');
  await expect(checked).rejects.toThrow(
    'The input does not fit its schema. /size: Must be integer, not string.; /kind: Must be one of ["a","b"].; The property "name" is missing.',
  );
  expect(toJsonSchema(untrustedSchema(schema))).toEqual(schema);
});

// Without `$ref` siblings, unevaluated keywords and numbers on the edge of floating point.
const { value: anyValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<Json>(null, true, 0, 1, 2.5, '', 'a', 'ab'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
  ),
}));
const { schema: anySchema } = fc.letrec<{ schema: Json }>((tie) => {
  const some = fc.array(tie('schema'), { minLength: 1, maxLength: 3 });
  const named = fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'), { maxKeys: 3 });
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'));
  const count = fc.nat({ max: 3 });
  const type = fc.constantFrom('array', 'boolean', 'integer', 'null', 'number', 'object', 'string');
  const keywords: Record<string, fc.Arbitrary<unknown>> = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    const: anyValue,
    enum: fc.array(anyValue, { minLength: 1, maxLength: 3 }),
    allOf: some,
    anyOf: some,
    oneOf: some,
    not: tie('schema'),
    if: tie('schema'),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: tie('schema'),
    else: tie('schema'),
    properties: named,
    additionalProperties: tie('schema'),
    propertyNames: tie('schema'),
    required: names,
    minProperties: count,
    maxProperties: count,
    dependentRequired: fc.dictionary(fc.constantFrom('a', 'b'), names),
    dependentSchemas: named,
    prefixItems: some,
    items: tie('schema'),
    minItems: count,
    maxItems: count,
    uniqueItems: fc.boolean(),
    minimum: count,
    maximum: count,
    exclusiveMinimum: count,
    exclusiveMaximum: count,
    multipleOf: fc.constantFrom(0.5, 1, 2),
    minLength: count,
    maxLength: count,
  };
  const entries = Object.entries(keywords).map(([keyword, value]) =>
    fc.tuple(fc.constant(keyword), value),
  );
  const record = fc.array(fc.oneof(...entries), { maxLength: 4 }).map(Object.fromEntries);
  return { schema: fc.oneof({ maxDepth: 3 }, fc.boolean(), record) as fc.Arbitrary<Json> };
});

test('an untrusted schema means the same as one of the app', async () => {
  await fc.assert(
    fc.asyncProperty(anySchema, anyValue, async (inner, value) => {
      const schema = { $defs: { inner }, $ref: '#/$defs/inner' } as JsonObject;
      const fits = jsonSchemaIssues(schema, value, 'The value').length === 0;
      expect(await outcome(schema, value)).toBe(fits ? 'fits' : 'INVALID_ARGUMENT');
    }),
    { numRuns: 1_000 },
  );
});
