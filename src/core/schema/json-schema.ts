import {
  dereference,
  type OutputUnit,
  type Schema as RawSchema,
  type SchemaDraft,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
  Validator,
} from '@cfworker/json-schema';
import { invalid, type WaymarkError } from '../error.ts';
import { getOrMake } from '../get-or-make.ts';
import {
  isJsonArray,
  isJsonObject,
  isLarge,
  type Json,
  type JsonObject,
  toJson,
} from '../json/json.ts';
import { escapeStep } from '../json/pointer.ts';

/** A plain JSON Schema object, of any draft from 4 to 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** A fault of a value, and its place: `path` is a JSON Pointer. */
export type SchemaIssue = { readonly path: string; readonly message: string };

const validators = {
  all: new WeakMap<JsonSchema, Validator>(),
  first: new WeakMap<JsonSchema, Validator>(),
};

/** The issues of a value under a JSON Schema; none when it fits. */
export function jsonSchemaIssues(
  schema: JsonSchema,
  value: unknown,
  what: string,
): readonly SchemaIssue[] {
  if (value === undefined) return [{ path: '', message: 'A value is required.' }];
  const instance = toJson(value, what);
  // Each issue is reported again by the keywords around it: of a large value only the first one is looked for.
  const validator = validatorOf(schema, isLarge(instance) ? 'first' : 'all');
  try {
    return toIssues(validator.validate(instance).errors);
  } catch (cause) {
    // A fault that the check of its form does not see, such as a $ref that leads back to itself.
    throw invalid(`The JSON Schema of ${what} cannot be applied.`, {
      cause,
    });
  }
}

/**
 * A checked and frozen copy of a JSON Schema; INVALID_ARGUMENT says where it is not one: at the place where it was written, and
 * not when the first value comes.
 */
export function parseJsonSchema(schema: JsonSchema): JsonObject {
  const copy = toJson(schema, 'The JSON Schema');
  checkKeywords(copy, checkPatterns);
  checkReferences(copy);
  return copy as JsonObject;
}

function validatorOf(schema: JsonSchema, issues: keyof typeof validators): Validator {
  return getOrMake(validators[issues], schema, () => {
    // The validator writes into the schema that it is given.
    const own: RawSchema = JSON.parse(JSON.stringify(parseJsonSchema(schema)));
    return new Validator(own, draftOf(schema), issues === 'first');
  });
}

// A misfit inside is reported again by every keyword around it.
const wrappers: ReadonlySet<string> = new Set([
  '$ref',
  '$recursiveRef',
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'allOf',
  'if',
  'dependentSchemas',
]);

function toIssues(errors: readonly OutputUnit[]): readonly SchemaIssue[] {
  const inner = errors.filter(({ keyword }) => !wrappers.has(keyword));
  return (inner.length > 0 ? inner : errors).map(({ instanceLocation, keyword, error }) => ({
    path: decodeURI(instanceLocation.slice(1).replaceAll('%23', '#')),
    message: keyword === 'false' ? 'Nothing is allowed here.' : error,
  }));
}

function draftOf({ $schema }: JsonSchema): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12';
  if (/draft-0?4/.test($schema)) return '4';
  if (/draft-0?[67]/.test($schema)) return '7';
  return $schema.includes('2019-09') ? '2019-09' : '2020-12';
}

/** Sees a schema, and each one inside it, with its JSON Pointer. */
type Visit = (schema: JsonObject, path: string) => void;

/** Refuses keywords whose values are no schemas where they must be, or not of the right kind. */
export function checkKeywords(schema: Json | undefined, visit: Visit, path = ''): void {
  if (typeof schema === 'boolean' && path !== '') return;
  if (!isJsonObject(schema)) throw malformed(path, 'a schema must be an object');
  visit(schema, path);
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined) continue;
    const place = `${path}/${escapeStep(keyword)}`;
    checks.get(keyword)?.(value, place);
    checkInside(keyword, value, place, visit);
  }
}

function checkInside(keyword: string, value: Json, place: string, visit: Visit): void {
  if (isJsonArray(value) && !mapKeywords.has(keyword)) {
    if (!arrayKeywords.has(keyword)) return;
    for (const [at, child] of value.entries()) checkKeywords(child, visit, `${place}/${at}`);
  } else if (mapKeywords.has(keyword)) {
    if (!isJsonObject(value)) throw malformed(place, 'it must be an object of schemas');
    for (const [name, child] of Object.entries(value)) {
      // `dependencies` also holds lists of names.
      if (!isJsonArray(child)) checkKeywords(child, visit, `${place}/${escapeStep(name)}`);
    }
  } else if (keywords.has(keyword)) {
    checkKeywords(value, visit, place);
  } else if (arrayKeywords.has(keyword)) {
    throw malformed(place, 'it must be a list of schemas');
  }
}

// Sets, because a schema may have a keyword such as `constructor`.
const keywords: ReadonlySet<string> = new Set(Object.keys(schemaKeyword));
const arrayKeywords: ReadonlySet<string> = new Set(Object.keys(schemaArrayKeyword));
const mapKeywords: ReadonlySet<string> = new Set(Object.keys(schemaMapKeyword));

const types: ReadonlySet<unknown> = new Set([
  'array',
  'boolean',
  'integer',
  'null',
  'number',
  'object',
  'string',
]);

type Check = (value: Json, place: string) => void;

const checks: ReadonlyMap<string, Check> = new Map(
  Object.entries<Check>({
    type(value, place) {
      const names = isJsonArray(value) ? value : [value];
      const unknown = names.find((name) => !types.has(name));
      if (unknown !== undefined)
        throw malformed(place, `there is no type ${JSON.stringify(unknown)}`);
    },
    required(value, place) {
      if (!isJsonArray(value) || value.some((name) => typeof name !== 'string')) {
        throw malformed(place, 'it must be a list of property names');
      }
    },
    enum(value, place) {
      if (!isJsonArray(value)) throw malformed(place, 'it must be a list of values');
    },
  }),
);

function checkPatterns({ pattern, patternProperties }: JsonObject, path: string): void {
  if (pattern !== undefined) checkPattern(pattern, `${path}/pattern`);
  if (!isJsonObject(patternProperties)) return;
  for (const name of Object.keys(patternProperties)) {
    checkPattern(name, `${path}/patternProperties`);
  }
}

function checkPattern(value: Json, place: string): void {
  try {
    new RegExp(String(value), 'u');
  } catch {
    throw malformed(place, `${JSON.stringify(value)} is not a regular expression`);
  }
}

function checkReferences(schema: Json): void {
  // Finding out what is where leaves notes in the schema.
  const known = dereference(JSON.parse(JSON.stringify(schema)));
  for (const found of Object.values(known)) {
    if (typeof found === 'boolean' || typeof found.$ref !== 'string') continue;
    if (known[found.__absolute_ref__ ?? found.$ref] === undefined) {
      const place = found.__absolute_uri__?.split('#')[1] ?? '';
      throw malformed(`${place}/$ref`, `it leads to "${found.$ref}", which is not in this schema`);
    }
  }
}

export function malformed(path: string, reason: string): WaymarkError {
  const place = path === '' ? '' : ` at ${path}`;
  return invalid(`The JSON Schema is not valid${place}: ${reason}.`, {
    details: { path },
  });
}
