import type { Json, JsonObject } from '../../src/core/json/json.ts';

/** A schema that is costly to evaluate or to prepare, and a value for which it is. */
export interface HostileSchema {
  readonly name: string;
  readonly schema: JsonObject;
  readonly value: JsonObject;
}

const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** A value inside others. */
const nested = (count: number, inner: Json, around: (inside: Json) => Json): Json =>
  times(count, () => around).reduce((inside, wrap) => wrap(inside), inner);

const lists = (depth: number, inner: Json = 5): Json => nested(depth, inner, (inside) => [inside]);
const objects = (count: number): Json => times(count, (at) => ({ id: at, name: `item ${at}` }));
const texts = (count: number, length = 10): string[] =>
  times(count, (at) => `${'x'.repeat(length)}${at}`);

/** Definitions in which each uses the next one twice. */
function doubling(keyword: string, depth = 30, last: Json = { type: 'string' }): JsonObject {
  const next = (at: number): Json => ({ $ref: `#/$defs/d${at + 1}` });
  const defs = times(depth, (at) => [`d${at}`, { [keyword]: [next(at), next(at)] }]);
  return Object.fromEntries([...defs, [`d${depth}`, last]]);
}

/** `v` is what the schema is about: tools and formats have an object at the top. */
const about = (v: Json, $defs: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { v },
  required: ['v'],
  $defs,
});

const self = { $ref: '#/properties/v' };
const first = { $ref: '#/$defs/d0' };

const cases: readonly (readonly [string, JsonObject, Json])[] = [
  // Regular expressions.
  ['nested quantifiers', about({ type: 'string', pattern: '^(a+)+$' }), `${'a'.repeat(40)}!`],
  ['overlapping alternatives', about({ pattern: '^(a|aa|a?)+$' }), `${'a'.repeat(60)}!`],
  ['many quantifiers', about({ pattern: `${'.*'.repeat(30)}x` }), 'a'.repeat(5_000)],
  ['a back reference', about({ pattern: '^(a*)*\\1b$' }), 'a'.repeat(40)],
  ['a look-ahead', about({ pattern: '(?=(a+)+b)c' }), 'a'.repeat(40)],
  ['a counted group', about({ pattern: '^((a{1,100}){1,100}){1,100}$' }), `${'a'.repeat(99)}!`],
  ['unicode properties', about({ pattern: '\\p{L}\\p{Script=Greek}'.repeat(3_000) }), 'α'],
  [
    'a pattern of names',
    about({ patternProperties: { '^(a+)+$': { type: 'string' } }, additionalProperties: false }),
    { [`${'a'.repeat(40)}!`]: 1 },
  ],
  ['a pattern within `not`', about({ not: { not: { pattern: '^(a+)+$' } } }), `${'a'.repeat(40)}!`],
  [
    'patterns in alternatives',
    about({ oneOf: times(100, (at) => ({ pattern: `^(a+)+${at}$` })) }),
    `${'a'.repeat(40)}!`,
  ],
  ['a pattern for each name', about({ propertyNames: { pattern: '^(a+)+$' } }), { aaaaaaaaaa: 1 }],
  // References.
  ['doubling allOf', about(first, doubling('allOf')), 'x'],
  ['doubling anyOf', about(first, doubling('anyOf', 30, false)), 'x'],
  ['doubling oneOf', about(first, doubling('oneOf')), 'x'],
  ['doubling within `not`', about({ not: first }, doubling('allOf')), 'x'],
  ['doubling with patterns', about(first, doubling('oneOf', 30, { pattern: '^(a+)+$' })), 'aa'],
  ['a reference to itself', about(self), 'x'],
  ['two references to itself', about({ anyOf: [self, self] }), 'x'],
  [
    'a circle of references',
    about({ $ref: '#/$defs/a' }, { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }),
    'x',
  ],
  ['a circle of `not`', about({ not: self }), 'x'],
  [
    'a recursive list that is read twice',
    about({ anyOf: [{ items: self }, { items: self }], not: { const: 5 } }),
    lists(60),
  ],
  [
    'a recursive object that is read twice',
    about({ allOf: [{ additionalProperties: self }, { properties: { a: self } }] }),
    nested(100, 1, (inside) => ({ a: inside })),
  ],
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ['a recursive condition', about({ if: self, then: self, else: self }), 'x'],
  ['a dependency on itself', about({ dependentSchemas: { a: self } }), { a: 1 }],
  // Large values.
  ['unique objects', about({ uniqueItems: true }), objects(20_000)],
  [
    'unique lists',
    about({ uniqueItems: true, items: { uniqueItems: true } }),
    times(300, () => times(100, (at) => at)),
  ],
  ['equal objects', about({ items: { uniqueItems: true } }), [times(20_000, () => ({ a: 1 }))]],
  ['a long enum', about({ items: { enum: texts(10_000) } }), texts(20_000)],
  [
    'an enum of objects',
    about({ items: { enum: times(2_000, (at) => ({ id: at })) as Json } }),
    objects(5_000),
  ],
  [
    'a long constant',
    about({ items: { const: lists(100, texts(1_000)) } }),
    times(50, () => lists(100, texts(1_000))),
  ],
  [
    'many alternatives',
    about({ items: { anyOf: times(5_000, (at) => ({ const: at })) } }),
    texts(2_000),
  ],
  ['many names', about({ items: { required: texts(10_000) } }), times(2_000, () => ({}))],
  [
    'each name twice',
    about({ allOf: times(1_000, () => ({ propertyNames: { maxLength: 50 } })) }),
    Object.fromEntries(times(5_000, (at) => [`key${at}`, at])),
  ],
  [
    'lengths of long texts',
    about({ items: { allOf: times(1_000, () => ({ minLength: 60_000 })) } }),
    times(10, () => 'ä'.repeat(50_000)),
  ],
  [
    'contained items',
    about({ allOf: times(500, () => ({ contains: { type: 'null' }, maxContains: 1 })) }),
    texts(10_000),
  ],
  [
    'dependencies',
    about({
      items: { dependentRequired: Object.fromEntries(times(5_000, (at) => [`k${at}`, ['a']])) },
    }),
    times(1_000, () => ({ b: 1 })),
  ],
  // The schema itself.
  [
    'nested ids',
    about(nested(50, {}, (inside) => ({ $id: 'urn:x', properties: { a: inside } }))),
    {},
  ],
  ['deep nesting', about(nested(200, {}, (inside) => ({ not: inside }))), {}],
  ['many definitions', about({ $ref: '#/$defs/d0' }, doubling('anyOf', 3_000)), 'x'],
  [
    'names of prototypes',
    about({
      constructor: 1,
      toString: { $ref: '#/__proto__' },
      format: '__proto__',
      required: ['hasOwnProperty'],
    }),
    { valueOf: 1 },
  ],
];

/** All of them. */
export const hostileSchemas: readonly HostileSchema[] = cases.map(([name, schema, v]) => ({
  name,
  schema,
  value: { v },
}));

/** All of them in the long run, some in the short one. */
export const someHostileSchemas: readonly HostileSchema[] = hostileSchemas.filter(
  (_, at) => process.env.LONG === '1' || at % 4 === 0,
);

/** A request that makes an agent check a value against a schema of the caller. */
export interface HostileRequest {
  readonly way: string;
  readonly path: string;
  readonly body: object;
}

/** The requests with a schema, one for each protocol that takes one. The agent `chat` must do what it is told, as in test/server/kit.ts. */
export function hostileRequests({ schema, value }: HostileSchema): readonly HostileRequest[] {
  const id = crypto.randomUUID();
  const json = JSON.stringify(value);
  const say = `say ${json}`;
  const call = `call probe ${json}`;
  const name = 'probe';
  const responses = '/openai/v1/responses';
  const format = { type: 'json_schema', name, schema };
  const messages = [{ id: `m-${id}`, role: 'user', content: call }];
  const message = { role: 'user', content: [{ text: call }] };
  return [
    { way: 'text.format', path: responses, body: { model: 'chat', input: say, text: { format } } },
    {
      way: 'tools of Responses',
      path: responses,
      body: { model: 'chat', input: call, tools: [{ type: 'function', name, parameters: schema }] },
    },
    {
      way: 'tools of AG-UI',
      path: '/agui/chat',
      body: {
        threadId: id,
        runId: id,
        messages,
        tools: [{ name, description: 'Probes', parameters: schema }],
      },
    },
    {
      way: 'input.tools',
      path: '/agents/chat/turns',
      body: { input: { message, tools: [{ name, inputSchema: schema }] } },
    },
  ];
}
