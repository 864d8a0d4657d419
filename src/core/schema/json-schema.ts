import {
  type OutputUnit,
  type Schema as RawSchema,
  type SchemaDraft,
  Validator,
} from '@cfworker/json-schema';
import { WaymarkError } from '../error.ts';
import { isLarge, type JsonObject, toJson } from '../json/json.ts';
import { checkSchemaForm } from './json-schema-form.ts';

/** A plain JSON Schema object, of any draft from 4 to 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** What is wrong with a value, and where: `path` is a JSON Pointer. */
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
    // What the check of its form does not see, such as a $ref that leads back to itself.
    throw new WaymarkError('INVALID_ARGUMENT', `The JSON Schema of ${what} cannot be applied.`, {
      cause,
    });
  }
}

/** A checked and frozen copy of a JSON Schema; INVALID_ARGUMENT says where it is not one. */
export function parseJsonSchema(schema: JsonSchema): JsonObject {
  const copy = toJson(schema, 'The JSON Schema');
  checkSchemaForm(copy);
  return copy as JsonObject;
}

function validatorOf(schema: JsonSchema, issues: keyof typeof validators): Validator {
  let validator = validators[issues].get(schema);
  if (!validator) {
    // The validator writes into the schema that it is given.
    const own: RawSchema = JSON.parse(JSON.stringify(parseJsonSchema(schema)));
    validator = new Validator(own, draftOf(schema), issues === 'first');
    validators[issues].set(schema, validator);
  }
  return validator;
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
