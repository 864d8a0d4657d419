import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { childOf, isJsonObject, type Json, type JsonObject, toJson } from '../json/json.ts';
import { parsePointer } from '../json/pointer.ts';
import { takeBreak } from '../platform.ts';
import { checkKeywords, malformed } from './json-schema.ts';
import { BoundedEvaluation, type Place } from './untrusted-keywords.ts';

/** The longest schema as JSON, and how deep it may be nested. */
const limits = { length: 262_144, depth: 128 } as const;

/** The steps that an evaluation may take: some for the schema, more for a larger value, and an upper bound. */
const budget = { least: 50_000, perValue: 10, most: 1_000_000 } as const;

/** A Standard Schema that is also a JSON Schema. */
export interface UntrustedSchema {
  readonly '~standard': StandardSchemaV1.Props & StandardJSONSchemaV1.Props;
}

/**
 * A JSON Schema from a caller or a remote server, as a Standard Schema. It is evaluated in a limited number of steps, whatever it
 * contains; a value that needs more is RESOURCE_EXHAUSTED. Regular expressions (`pattern`, `patternProperties`) and `format` are
 * not evaluated. A schema that is not valid, too large or nested too deeply is INVALID_ARGUMENT.
 */
export function untrustedSchema(schema: JsonObject): UntrustedSchema {
  const root = toJson(schema, 'The JSON Schema');
  const refs = prepare(root);
  return {
    '~standard': {
      version: 1,
      vendor: 'json-schema',
      async validate(value) {
        // Many calls of one message come together: other work gets its turn between them.
        await takeBreak();
        if (value === undefined) return { issues: [{ message: 'A value is required.' }] };
        const json = toJson(value, 'The value');
        const issues = new BoundedEvaluation(refs, budgetFor(json)).issuesOf(root, json, {});
        if (issues.length === 0) return { value };
        return { issues: issues.map(({ message, at }) => ({ message, path: pathOf(at) })) };
      },
      jsonSchema: { input: () => root, output: () => root },
    },
  };
}

/** Checks a schema and finds what its references lead to. */
function prepare(root: JsonObject): ReadonlyMap<string, Json> {
  const { length } = JSON.stringify(root);
  if (length > limits.length) {
    throw malformed('', `it has ${length} characters, of at most ${limits.length}`);
  }
  if (!isWithin(root, limits.depth)) {
    throw malformed('', `it is nested more than ${limits.depth} levels deep`);
  }
  const refs = new Map<string, Json>();
  const places = new Map<string, string>();
  checkKeywords(root, (schema, path) => {
    const { $ref, $anchor, $id } = schema;
    if (typeof $anchor === 'string') refs.set(`#${$anchor}`, schema);
    if (typeof $id === 'string') refs.set($id, schema);
    if (typeof $ref === 'string' && !places.has($ref)) places.set($ref, path);
  });
  for (const [ref, path] of places) {
    const found = refs.get(ref) ?? targetOf(root, ref);
    if (found === undefined) {
      throw malformed(`${path}/$ref`, `it leads to "${ref}", which is not in this schema`);
    }
    refs.set(ref, found);
  }
  return refs;
}

function isWithin(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  return Object.values(value).every((child) => isWithin(child as Json, depth - 1));
}

/** The target of a reference within the schema: `#`, or `#` and a JSON Pointer, with or without the `$id` of the schema. */
function targetOf(root: JsonObject, ref: string): Json | undefined {
  const { $id } = root;
  const local = typeof $id === 'string' && ref.startsWith(`${$id}#`) ? ref.slice($id.length) : ref;
  const steps = local.startsWith('#') ? parsePointer(decoded(local.slice(1))) : undefined;
  const found = steps?.reduce(childOf, root as Json | undefined);
  return isJsonObject(found) || typeof found === 'boolean' ? found : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function budgetFor(value: Json): number {
  const enough = (budget.most - budget.least) / budget.perValue;
  return budget.least + budget.perValue * countOf(value, enough);
}

/** How many values a value consists of; counts no further than `most`. */
function countOf(value: Json, most: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null) return count;
  for (const child of Object.values(value)) {
    if (count >= most) return most;
    count += countOf(child as Json, most - count);
  }
  return Math.min(count, most);
}

function pathOf(at: Place): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (let place = at; place.step !== undefined && place.parent; place = place.parent) {
    path.unshift(place.step);
  }
  return path;
}
